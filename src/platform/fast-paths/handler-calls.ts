import {
  type ArgumentMetadata,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  ForbiddenException,
  type INestApplication,
  type NestInterceptor,
  type PipeTransform,
} from '@nestjs/common';
import {
  type ContextUtils,
  ExecutionContextHost,
  FORBIDDEN_MESSAGE,
  type GuardsConsumer,
  ParamsTokenFactory,
} from '@nestjs/core/internal';
import { markRejectedByPipes } from '@nestjs/core/router/rejected-by-pipes.js';
import type { RouteParamtypes } from '@nestjs/common/internal';
import { type ParamProperties, RouterExecutionContext } from '@nestjs/core/router/router-execution-context.js';
import type { Observable } from 'rxjs';
import { JsonBody } from '../json/json-body.js';

/**
 * An interceptor that acts before the handler, and leaves what the handler returns or throws as it is. One that overrides
 * `intercept` is an interceptor like any other.
 */
export abstract class PrecedingInterceptor implements NestInterceptor {
  /** What to do behind the guards and before the pipes. May throw; must not wait. */
  abstract precede(context: ExecutionContext): void;

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    this.precede(context);
    return next.handle();
  }
}

/** What `RouterExecutionContext` keeps to itself. */
interface Internals {
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

/** Finds what is bound to a handler: globally, by its controller, and by itself. */
interface Creator<Bound> {
  create(instance: object, callback: Handler, module: string, contextId?: Creation[5], inquirerId?: string): Bound[];
}

type Creation = Parameters<RouterExecutionContext['create']>;
type Handler = Creation[1];
type Call = ReturnType<RouterExecutionContext['create']>;
type Parameter = ParamProperties & { metatype?: ArgumentMetadata['metatype'] };
type Message = [request: unknown, response: unknown, next: unknown];
/** Puts the arguments of a handler in their places; a promise when there is something to wait for. */
type Collect = (args: unknown[], ...message: Message) => PromiseLike<unknown> | undefined;

/**
 * Calls handlers as Nest does, in the same order: guards, interceptors, pipes, the handler, its answer.
 *
 * Nest makes a promise for each guard, for each pipe of each parameter, and for the answer, and puts an observable around
 * each interceptor: for a short request as much work as all the rest. Here only what is a promise is waited for, interceptors
 * that merely precede are plain calls, and a `JsonBody` is sent at once. Handlers with other interceptors, and those that
 * send events, are called by Nest itself; so are the pipes of handlers with several parameters to pipe.
 */
class HandlerCalls extends RouterExecutionContext {
  override create(...creation: Creation): Call {
    const [instance, callback, methodName, module, requestMethod, contextId, inquirerId] = creation;
    const nest = this as unknown as Internals;
    const handler = this.getMetadata(instance, callback, methodName, module, requestMethod, 'http');
    const bound = [instance, callback, module, contextId, inquirerId] as const;
    const interceptors = nest.interceptorsContextCreator.create(...bound);
    if (handler.isSseHandler || !interceptors.every(isPreceding)) {
      return super.create(...creation);
    }
    const parameters = nest.contextUtils.mergeParamsMetatypes(
      handler.getParamsMetadata(module, contextId, inquirerId),
      handler.paramtypes,
    ) as Parameter[];
    const pipes = nest.pipesContextCreator.create(...bound);
    const pipeable = parameters.filter(({ type }) => this.isPipeable(type));
    nest.contextUtils.warnOnMissingParamtypes(instance, methodName, handler.paramtypes, pipes, pipeable);
    const guards = nest.guardsContextCreator.create(...bound);
    // Of several that are piped, who begins first and whose error is told depends on every promise that Nest makes.
    const collect = (
      pipeable.length > 1 ? this.createPipesFn(pipes, parameters) : collectDirectly(parameters, pipeable[0], pipes)
    ) as Collect;
    const answer = handler.fnHandleResponse as (...parameters: unknown[]) => Promise<unknown>;
    const sendsJson =
      !nest.isResponseHandled(instance, methodName, parameters) &&
      !this.reflectRedirect(callback) &&
      !this.reflectRenderTemplate(callback);

    const contextOf = (...message: Message): ExecutionContext =>
      new ExecutionContextHost(message, instance.constructor as never, callback);

    return async (request, response, next) => {
      if (guards.length > 0) {
        const context = contextOf(request, response, next);
        for (const guard of guards) {
          const verdict = guard.canActivate(context);
          if (verdict !== true && !(await nest.guardsConsumer.pickResult(verdict))) {
            throw new ForbiddenException(FORBIDDEN_MESSAGE);
          }
        }
      }
      nest.responseController.setStatus(response, handler.httpStatusCode);
      if (handler.hasCustomHeaders) {
        nest.responseController.setHeaders(response, handler.responseHeaders);
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
}

const tokens = new ParamsTokenFactory();

/** Collects the arguments of a handler of which at most one goes through pipes. */
function collectDirectly(
  parameters: readonly Parameter[],
  piped: Parameter | undefined,
  pipes: readonly PipeTransform[],
): Collect {
  const plain = parameters.filter((parameter) => parameter !== piped);
  const passAll = piped && passing(piped, [...pipes, ...piped.pipes]);
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

/** Passes a value through pipes; a promise as soon as it or one of them is. */
function passing(
  { type, metatype, data, schema }: Parameter,
  pipes: readonly PipeTransform[],
): (value: unknown) => unknown {
  const token = tokens.exchangeEnumForString(type as RouteParamtypes);
  const pass = (value: unknown, first: number): unknown => {
    for (let index = first; ; index++) {
      if (isPromise(value)) {
        return Promise.resolve(value).then((settled) => pass(settled, index));
      }
      const pipe = pipes[index];
      if (pipe === undefined) return value;
      // Of its own for each pipe, which may keep or change it.
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
 * Lets the handlers of an application, whose routes are not registered yet, be called so. Nest offers no other way to it than
 * its internals.
 *
 * @throws TypeError when this version of Nest has other internals
 */
export function callHandlersDirectly(app: INestApplication): void {
  const { routesResolver } = app as unknown as {
    routesResolver?: { routerExplorer?: { executionContextCreator?: unknown } };
  };
  const calls = routesResolver?.routerExplorer?.executionContextCreator;
  if (!(calls instanceof RouterExecutionContext)) {
    throw new TypeError('This version of Nest calls handlers from elsewhere.');
  }
  Object.setPrototypeOf(calls, HandlerCalls.prototype);
}
