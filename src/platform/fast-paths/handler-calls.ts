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
 * and runs the pipes of handlers with several piped parameters, unless each of these has exactly one pipe.
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
      const pipesOf = (parameter: Parameter): PipeTransform[] => [...pipes, ...parameter.pipes];
      const collector = (parameter: Parameter): Collector => ({
        index: parameter.index,
        extract: parameter.extractValue as Collector['extract'],
        pass: pipeable.includes(parameter) ? passing(parameter, pipesOf(parameter), tokenOf) : undefined,
      });
      router.contextUtils.warnOnMissingParamtypes(instance, methodName, handler.paramtypes, pipes, pipeable);
      const guards = router.guardsContextCreator.create(...bound);
      const isDirect = pipeable.length < 2 || pipeable.every((parameter) => pipesOf(parameter).length === 1);
      const collect = (
        isDirect ? collectDirectly(parameters.map(collector)) : this.createPipesFn(pipes, parameters)
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

/** How one argument of a handler is made. */
interface Collector {
  readonly index: number;
  readonly extract: (...message: Message) => unknown;
  /** Passes the value through its pipes. Returns a promise if the value is one, if a pipe makes one, or if a pipe throws. */
  readonly pass: ((value: unknown) => unknown) | undefined;
}

/**
 * Collects the arguments of a handler. All collectors run, whichever fails, and the first promise to be rejected decides
 * the error, as with Nest. These promises take as long as Nest's only where there is one piped parameter, or each has one pipe.
 */
function collectDirectly(collectors: readonly Collector[]): Collect {
  return (args, ...message) => {
    let pending: Promise<unknown>[] | undefined;
    for (const { index, extract, pass } of collectors) {
      try {
        const value = extract(...message);
        const passed = pass ? pass(value) : value;
        if (pass && isPromise(passed)) (pending ??= []).push(adopt(passed).then((settled) => (args[index] = settled)));
        else args[index] = passed;
      } catch (error) {
        (pending ??= []).push(Promise.reject(error));
      }
    }
    return pending && (pending.length === 1 ? pending[0] : Promise.all(pending));
  };
}

/** Nest's promises of a parameter adopt those of its pipes, which takes a turn of the microtask queue more. */
async function adopt(value: PromiseLike<unknown>): Promise<unknown> {
  return value;
}

type TokenOf = (type: Parameter['type']) => ArgumentMetadata['type'];

/** Makes the member `pass` of a collector. */
function passing(
  { type, metatype, data, schema }: Parameter,
  pipes: readonly PipeTransform[],
  tokenOf: TokenOf,
): Collector['pass'] {
  const token = tokenOf(type);
  // A fresh metadata object per pipe: pipes may keep or modify it.
  const metadata = (): ArgumentMetadata => ({ metatype, type: token, data, schema }) as ArgumentMetadata;
  const settle = async (value: unknown, next: number): Promise<unknown> => {
    let settled = await value;
    for (const pipe of pipes.slice(next)) settled = await pipe.transform(settled, metadata());
    return settled;
  };
  return (value) => {
    try {
      for (let index = 0; index < pipes.length; index++) {
        if (isPromise(value)) return settle(value, index);
        value = (pipes[index] as PipeTransform).transform(value, metadata());
      }
    } catch (error) {
      // Not thrown: what fails to be extracted is refused before.
      return Promise.reject(error);
    }
    return isPromise(value) ? settle(value, pipes.length) : value;
  };
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
