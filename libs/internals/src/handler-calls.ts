import {
  type ArgumentMetadata,
  type CanActivate,
  ForbiddenException,
  type HttpServer,
  type INestApplication,
  type NestInterceptor,
  type PipeTransform,
} from '@nestjs/common';
import type { RouteParamtypes } from '@nestjs/common/internal';
import type { ContextUtils, GuardsConsumer } from '@nestjs/core/internal';
import type { ParamProperties, RouterExecutionContext } from '@nestjs/core/router/router-execution-context.js';
import { isObservable, lastValueFrom } from 'rxjs';
import { isDeclared } from '#json';
import { differenceOfNest, importNestInternals, type NestInternals } from './nest-internals.js';
import { logOtherInternals } from './other-internals.js';
import { DirectInterceptor } from './direct-interceptor.js';

/** Imported dynamically, because a static import of a missing module would fail the start. */
const NEST = await importNestInternals().catch(() => null);

/** Private members of `RouterExecutionContext`. */
interface PrivateMembers {
  readonly applicationRef: HttpServer;
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
/** What Nest calls a handler with. */
type Message = [request: unknown, response: unknown, next: unknown];

/** A parameter of a handler, as Nest describes it. */
type Parameter = ParamProperties & { metatype?: ArgumentMetadata['metatype'] };

/** How one argument of a handler is made. */
interface Argument {
  readonly index: number;
  readonly extract: (...message: Message) => unknown;
  /** False for parameters such as `@Req()`, which Nest passes unchanged even if they are promises. */
  readonly isPiped: boolean;
  readonly pipes: readonly PipeTransform[];
  readonly metadata: ArgumentMetadata;
}

type SendAnswer = (...parameters: unknown[]) => Promise<unknown>;

/**
 * Makes a subclass of Nest's `RouterExecutionContext` that calls handlers as Nest does, in the same order: guards,
 * interceptors, pipes, the handler, its answer.
 *
 * Nest awaits each guard, each pipe of each parameter and the answer, and wraps each interceptor in an observable. For a
 * short request this is as much work as all the rest. Here only promises are awaited, direct interceptors are plain calls,
 * and values are sent at once. Nest's own code calls the handlers that do more: those with other interceptors or
 * request scope, and those that send events, redirect, render, or write the response themselves.
 */
function createHandlerCallsClass(nest: NestInternals): typeof RouterExecutionContext {
  const { ExecutionContextHost, FORBIDDEN_MESSAGE, markRejectedByPipes } = nest;
  const tokens = new nest.ParamsTokenFactory();

  return class HandlerCalls extends nest.RouterExecutionContext {
    /** Nest calls this once for each handler, and for each request of a controller with request scope. */
    override create(...creation: Creation): Call {
      const [instance, callback, methodName, module, requestMethod, contextId, inquirerId] = creation;
      const router = this as unknown as PrivateMembers;
      const handler = this.getMetadata(instance, callback, methodName, module, requestMethod, 'http');
      const bound = [instance, callback, module, contextId, inquirerId] as const;
      const interceptors = router.interceptorsContextCreator.create(...bound);
      const described = handler.getParamsMetadata(module, contextId, inquirerId);
      const parameters = router.contextUtils.mergeParamsMetatypes(described, handler.paramtypes) as Parameter[];
      const isOrdinary =
        contextId === nest.STATIC_CONTEXT &&
        !handler.isSseHandler &&
        !router.isResponseHandled(instance, methodName, parameters) &&
        !this.reflectRedirect(callback) &&
        !this.reflectRenderTemplate(callback);
      if (!isOrdinary || !interceptors.every(isDirect)) return super.create(...creation);

      const before = interceptors.filter((each) => each.before !== DirectInterceptor.prototype.before);
      const after = interceptors.filter((each) => each.after !== DirectInterceptor.prototype.after).reverse();
      const pipes = router.pipesContextCreator.create(...bound);
      const piped = parameters.filter(({ type }) => this.isPipeable(type));
      router.contextUtils.warnOnMissingParamtypes(instance, methodName, handler.paramtypes, pipes, piped);
      const { applicationRef, guardsConsumer, responseController } = router;
      const { httpStatusCode, hasCustomHeaders, responseHeaders } = handler;
      const guards = router.guardsContextCreator.create(...bound);
      const args = parameters.map((parameter) => this.argumentOf(parameter, pipes));
      const sendByNest = handler.fnHandleResponse as SendAnswer;
      const controller = instance.constructor as never;

      // Runs for every request, and is one function on purpose: a step that is an `async` function of its own would cost a
      // promise.
      return async (request, response, next) => {
        if (guards.length > 0) {
          // Not shared with the interceptors, as with Nest: guards and interceptors may modify theirs.
          const context = new ExecutionContextHost([request, response, next], controller, callback);
          for (const guard of guards) {
            const verdict = guard.canActivate(context);
            if (verdict !== true && !(await guardsConsumer.pickResult(verdict))) {
              throw new ForbiddenException(FORBIDDEN_MESSAGE);
            }
          }
        }
        // Before the interceptors and the handler, which may change them.
        responseController.setStatus(response, httpStatusCode);
        if (hasCustomHeaders) responseController.setHeaders(response, responseHeaders);
        const context = new ExecutionContextHost([request, response, next], controller, callback);
        for (const interceptor of before) interceptor.before(context);
        const values: unknown[] = [];
        const pending: Promise<unknown>[] = [];
        try {
          for (const { index, extract, isPiped, pipes: own, metadata } of args) {
            const value = extract(request, response, next);
            const piped = isPiped ? passThrough(own, value, metadata) : value;
            values[index] = piped;
            if (isPiped && isPromise(piped)) pending.push(awaited(piped).then((each) => (values[index] = each)));
          }
          // As with Nest, the pipes of all arguments run at the same time.
          if (pending.length > 0) await Promise.all(pending);
        } catch (error) {
          // Nobody else awaits the others.
          void Promise.allSettled(pending);
          markRejectedByPipes(request);
          throw error;
        }
        let result: unknown = await callback.apply(instance, values);
        if (after.length > 0) {
          if (isObservable(result)) result = await lastValueFrom(result);
          for (const interceptor of after) result = interceptor.after(result, context);
        }
        if (Array.isArray(result) || isValue(result)) applicationRef.reply(response, result);
        else await sendByNest(result, response, request);
      };
    }

    private argumentOf(
      { index, extractValue, type, metatype, data, schema, pipes }: Parameter,
      bound: PipeTransform[],
    ) {
      const isPiped = this.isPipeable(type);
      return {
        index,
        extract: extractValue as Argument['extract'],
        isPiped,
        pipes: isPiped ? [...bound, ...pipes] : [],
        metadata: { metatype, type: tokens.exchangeEnumForString(type as RouteParamtypes), data, schema },
      } as Argument;
    }
  };
}

/** What the pipes make of a value: a promise from the first promise on. */
function passThrough(pipes: readonly PipeTransform[], value: unknown, metadata: ArgumentMetadata, first = 0): unknown {
  for (let index = first; index < pipes.length; index++) {
    if (isPromise(value)) return awaited(value).then((each) => passThrough(pipes, each, metadata, index));
    // A fresh object: pipes may keep or modify it.
    value = (pipes[index] as PipeTransform).transform(value, { ...metadata });
  }
  return value;
}

async function awaited(value: PromiseLike<unknown>): Promise<unknown> {
  return await value;
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function';
}

function isDirect(interceptor: NestInterceptor): interceptor is DirectInterceptor {
  return interceptor.intercept === DirectInterceptor.prototype.intercept;
}

/** Whether Nest would send a result as it is: not an observable, a stream, a file or a web `Response`. */
function isValue(result: unknown): boolean {
  if (typeof result !== 'object' || result === null || isDeclared(result)) return true;
  return Object.getPrototypeOf(result) === Object.prototype && !(Symbol.asyncIterator in result);
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
