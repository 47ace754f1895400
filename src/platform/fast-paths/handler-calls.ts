import {
  type ArgumentMetadata,
  type CanActivate,
  type ExecutionContext,
  ForbiddenException,
  type INestApplication,
  type NestInterceptor,
  type PipeTransform,
} from '@nestjs/common';
import type { RouteParamtypes } from '@nestjs/common/internal';
import type { ContextUtils, GuardsConsumer } from '@nestjs/core/internal';
import type { ParamProperties, RouterExecutionContext } from '@nestjs/core/router/router-execution-context.js';
import { JsonBody } from '../json/json-body.js';
import { differenceOfNest, importNestInternals, type NestInternals } from './nest-internals.js';
import { logOtherInternals } from './other-internals.js';
import { PrecedingInterceptor } from './preceding-interceptor.js';

/** Imported dynamically, because a static import of a missing module would fail the start. */
const NEST = await importNestInternals().catch(() => null);

/** Private members of `RouterExecutionContext`. */
interface PrivateMembers {
  readonly contextUtils: ContextUtils;
  readonly guardsConsumer: GuardsConsumer;
  readonly guardsContextCreator: Creator<CanActivate>;
  readonly interceptorsContextCreator: Creator<NestInterceptor>;
  readonly pipesContextCreator: Creator<PipeTransform>;
  readonly responseController: {
    setStatus(response: unknown, status: number): void;
    setHeaders(response: unknown, headers: unknown): void;
  };
  isResponseHandled(instance: object, methodName: string, params: ParamProperties[]): boolean;
}

/** Finds the guards, interceptors or pipes of a handler: global ones, those of its controller, and its own. */
interface Creator<Bound> {
  create(instance: object, callback: Handler, module: string, contextId?: Creation[5], inquirerId?: string): Bound[];
}

type Creation = Parameters<RouterExecutionContext['create']>;
type Handler = Creation[1];
type Call = ReturnType<RouterExecutionContext['create']>;
type Parameter = ParamProperties & { metatype?: ArgumentMetadata['metatype'] };
type Message = [request: unknown, response: unknown, next: unknown];
/** Fills the arguments of a handler; returns a promise if one of them is asynchronous. */
type Collect = (args: unknown[], ...message: Message) => PromiseLike<unknown> | undefined;

/**
 * Makes a subclass of Nest's `RouterExecutionContext` that calls handlers as Nest does, in the same order: guards,
 * interceptors, pipes, the handler, its answer.
 *
 * Nest awaits each guard, each pipe of each parameter and the answer, and wraps each interceptor in an observable. For a
 * short request this is as much work as all the rest. Here only promises are awaited, preceding interceptors are plain
 * calls, and a `JsonBody` is sent at once. Nest's own code still calls handlers that send events or have other interceptors,
 * and runs the pipes of handlers with several piped parameters.
 */
function createHandlerCallsClass(nest: NestInternals): typeof RouterExecutionContext {
  const { ExecutionContextHost, FORBIDDEN_MESSAGE, markRejectedByPipes } = nest;
  const tokens = new nest.ParamsTokenFactory();

  return class HandlerCalls extends nest.RouterExecutionContext {
    override create(...creation: Creation): Call {
      const [instance, callback, methodName, module, requestMethod, contextId, inquirerId] = creation;
      const router = this as unknown as PrivateMembers;
      const handler = this.getMetadata(instance, callback, methodName, module, requestMethod, 'http');
      const bound = [instance, callback, module, contextId, inquirerId] as const;
      const interceptors = router.interceptorsContextCreator.create(...bound);
      if (handler.isSseHandler || !interceptors.every(isPreceding)) {
        return super.create(...creation);
      }
      const parameters = router.contextUtils.mergeParamsMetatypes(
        handler.getParamsMetadata(module, contextId, inquirerId),
        handler.paramtypes,
      ) as Parameter[];
      const pipes = router.pipesContextCreator.create(...bound);
      const pipeable = parameters.filter(({ type }) => this.isPipeable(type));
      router.contextUtils.warnOnMissingParamtypes(instance, methodName, handler.paramtypes, pipes, pipeable);
      const guards = router.guardsContextCreator.create(...bound);
      // With several piped parameters, order and first error depend on Nest's promise timing, so Nest's code runs.
      const collect = (
        pipeable.length > 1
          ? this.createPipesFn(pipes, parameters)
          : collectDirectly(parameters, pipeable[0], pipes, tokenOf)
      ) as Collect;
      const answer = handler.fnHandleResponse as (...parameters: unknown[]) => Promise<unknown>;
      const sendsJson =
        !router.isResponseHandled(instance, methodName, parameters) &&
        !this.reflectRedirect(callback) &&
        !this.reflectRenderTemplate(callback);

      const contextOf = (...message: Message): ExecutionContext =>
        new ExecutionContextHost(message, instance.constructor as never, callback);

      return async (request, response, next) => {
        if (guards.length > 0) {
          const context = contextOf(request, response, next);
          for (const guard of guards) {
            const verdict = guard.canActivate(context);
            if (verdict !== true && !(await router.guardsConsumer.pickResult(verdict))) {
              throw new ForbiddenException(FORBIDDEN_MESSAGE);
            }
          }
        }
        router.responseController.setStatus(response, handler.httpStatusCode);
        if (handler.hasCustomHeaders) {
          router.responseController.setHeaders(response, handler.responseHeaders);
        }
        if (interceptors.length > 0) {
          const context = contextOf(request, response, next);
          for (const interceptor of interceptors) {
            interceptor.precede(context);
          }
        }
        const args: unknown[] = [];
        try {
          const pending = collect(args, request, response, next);
          if (pending) {
            await pending;
          }
        } catch (error) {
          markRejectedByPipes(request);
          throw error;
        }
        const result: unknown = await callback.apply(instance, args);
        if (sendsJson && result instanceof JsonBody) {
          this.applicationRef.reply(response, result);
        } else {
          await answer(result, response, request);
        }
      };
    }
  };

  function tokenOf(type: Parameter['type']): ArgumentMetadata['type'] {
    return tokens.exchangeEnumForString(type as RouteParamtypes);
  }
}

type TokenOf = (type: Parameter['type']) => ArgumentMetadata['type'];

/** Collects the arguments of a handler with at most one piped parameter. */
function collectDirectly(
  parameters: readonly Parameter[],
  piped: Parameter | undefined,
  pipes: readonly PipeTransform[],
  tokenOf: TokenOf,
): Collect {
  const plain = parameters.filter((parameter) => parameter !== piped);
  const passAll = piped && passing(piped, [...pipes, ...piped.pipes], tokenOf);
  return (args, ...message) => {
    for (const { index, extractValue } of plain) {
      args[index] = (extractValue as Extract)(...message);
    }
    if (!piped || !passAll) return undefined;
    const value = passAll((piped.extractValue as Extract)(...message));
    if (isPromise(value)) {
      return value.then((settled) => (args[piped.index] = settled));
    }
    args[piped.index] = value;
    return undefined;
  };
}

type Extract = (...message: Message) => unknown;

/** Passes a value through pipes; returns a promise if the value or the result of a pipe is one. */
function passing(
  { type, metatype, data, schema }: Parameter,
  pipes: readonly PipeTransform[],
  tokenOf: TokenOf,
): (value: unknown) => unknown {
  const token = tokenOf(type);
  const pass = (value: unknown, first: number): unknown => {
    for (let index = first; ; index++) {
      if (isPromise(value)) {
        return Promise.resolve(value).then((settled) => pass(settled, index));
      }
      const pipe = pipes[index];
      if (pipe === undefined) return value;
      // A fresh metadata object per pipe: pipes may keep or modify it.
      value = pipe.transform(value, { metatype, type: token, data, schema } as ArgumentMetadata);
    }
  };
  return (value) => pass(value, 0);
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return (
    value !== null &&
    (typeof value === 'object' || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}

function isPreceding(interceptor: NestInterceptor): interceptor is PrecedingInterceptor {
  return interceptor.intercept === PrecedingInterceptor.prototype.intercept;
}

/**
 * Replaces the way an application calls its handlers. Must be called before routes are registered, which `listen` does. If
 * Nest's internals differ from the known ones, logs one line and changes nothing.
 *
 * @param nest for tests
 */
export function callHandlersDirectly(app: INestApplication, nest: NestInternals | null = NEST): void {
  const calls = findHandlerCalls(app);
  const difference = differenceOfNest(calls, nest);
  if (difference === undefined) {
    Object.setPrototypeOf(calls, createHandlerCallsClass(nest as NestInternals).prototype);
  } else {
    logOtherInternals('handler-calls', difference);
  }
}

function findHandlerCalls(app: INestApplication): unknown {
  const { routesResolver } = app as unknown as {
    routesResolver?: { routerExplorer?: { executionContextCreator?: unknown } };
  };
  return routesResolver?.routerExplorer?.executionContextCreator;
}
