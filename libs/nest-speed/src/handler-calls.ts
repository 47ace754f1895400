import { AsyncResource } from 'node:async_hooks';
import {
  type ArgumentMetadata,
  type CanActivate,
  type ExecutionContext,
  ForbiddenException,
  type HttpServer,
  type INestApplication,
  type NestInterceptor,
  type PipeTransform,
  StreamableFile,
} from '@nestjs/common';
import type { RouteParamtypes } from '@nestjs/common/internal';
import type { ContextUtils, GuardsConsumer } from '@nestjs/core/internal';
import type { ParamProperties, RouterExecutionContext } from '@nestjs/core/router/router-execution-context.js';
import {
  EMPTY,
  EmptyError,
  from,
  isObservable,
  lastValueFrom,
  NEVER,
  Observable,
  type ObservableInput,
  of,
  Subject,
  type Subscriber,
  Subscription,
  takeUntil,
  tap,
} from 'rxjs';
import { logOtherInternals } from '#internals';
import { DirectInterceptor } from './direct-interceptor.js';
import { differenceOfNest, importNestInternals, type NestInternals } from './nest-internals.js';

/** Imported dynamically, because a static import of a missing module would fail the start. */
const NEST = await importNestInternals().catch(() => null);

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
  fromClientDisconnect(request: unknown, response: unknown): Observable<unknown>;
  trackHandlerStream(emitted: unknown, streams: unknown[]): void;
  pickStreamingBody(result: unknown, streams: unknown[]): unknown;
}

/** Finds the guards, interceptors or pipes of a handler: global ones, those of its controller, and its own. */
interface Creator<Bound> {
  create(instance: object, callback: Handler, module: string, contextId?: Creation[5], inquirerId?: string): Bound[];
}

type Creation = Parameters<RouterExecutionContext['create']>;
type Handler = Creation[1];
type Call = ReturnType<RouterExecutionContext['create']>;
type Message = [request: unknown, response: unknown, next: unknown];

type Parameter = ParamProperties & { metatype?: ArgumentMetadata['metatype'] };

interface Argument {
  readonly index: number;
  readonly extract: (...message: Message) => unknown;
  /** False for parameters such as `@Req()`, which Nest passes unchanged even if they are promises. */
  readonly isPiped: boolean;
  readonly pipes: readonly PipeTransform[];
  readonly metadata: ArgumentMetadata;
}

type Awaitable = Partial<PromiseLike<unknown>> | null | undefined;
type SendAnswer = (...parameters: unknown[]) => Promise<unknown>;

/**
 * Makes a subclass of Nest's `RouterExecutionContext` that calls handlers as Nest does, in the same order: guards,
 * interceptors, pipes, the handler, its response.
 *
 * Nest awaits each guard, each pipe of each parameter and the response, and wraps each interceptor in an observable.
 * For a short request this is as much work as all the rest. Here only promises are awaited, direct interceptors behind
 * the last other one are plain calls, the others need one observable each instead of four, and values are sent at once.
 * Nest's own code calls the handlers that do more: those with request scope, and those that send events, redirect, render, or write the
 * response themselves.
 */
function createHandlerCallsClass(nest: NestInternals): typeof RouterExecutionContext {
  const { destroyUnsentBody, ExecutionContextHost, FORBIDDEN_MESSAGE, markRejectedByPipes } = nest;
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
      if (!isOrdinary) return super.create(...creation);

      const outer = interceptors.slice(0, interceptors.findLastIndex((each) => !isDirect(each)) + 1);
      const inner = interceptors.slice(outer.length) as DirectInterceptor[];
      const before = inner.filter((each) => each.before !== DirectInterceptor.prototype.before);
      const after = inner.filter((each) => each.after !== DirectInterceptor.prototype.after).reverse();
      const pipes = router.pipesContextCreator.create(...bound);
      const piped = parameters.filter(({ type }) => this.isPipeable(type));
      router.contextUtils.warnOnMissingParamtypes(instance, methodName, handler.paramtypes, pipes, piped);
      const { applicationRef, guardsConsumer, responseController } = router;
      const { httpStatusCode, hasCustomHeaders, responseHeaders } = handler;
      const guards = router.guardsContextCreator.create(...bound);
      const args = parameters.map((parameter) => this.argumentOf(parameter, pipes));
      const sendByNest = handler.fnHandleResponse as SendAnswer;
      const controller = instance.constructor as never;

      /** Whether Nest would hand a result to the adapter and need not release anything if that fails. */
      const isValue = (result: unknown): boolean =>
        !isObservable(result) &&
        !(result instanceof StreamableFile) &&
        router.pickStreamingBody(result, []) === undefined;
      const handle = (message: Message): unknown => {
        const values = valuesOf(args, message, markRejectedByPipes);
        return Array.isArray(values)
          ? callback.apply(instance, values)
          : values.then<unknown>((settled) => callback.apply(instance, settled));
      };
      const callInterceptors = async (context: ExecutionContext, message: Message): Promise<void> => {
        const [request, response] = message;
        const streams: unknown[] = [];
        const gone = new Subject<true>();
        let isGone = false;
        let isOver = false;
        let watch: Subscription | undefined;
        const callHandler = async (): Promise<unknown> => {
          for (const interceptor of before) interceptor.before(context);
          let result = await handle(message);
          if (isObservable(result) && after.length > 0) result = await lastValueFrom(result);
          for (const interceptor of after) result = interceptor.after(result, context);
          if (!isObservable(result)) {
            // An interceptor has not waited for it.
            if (isOver) destroyUnsentBody(result);
            else router.trackHandlerStream(result, streams);
            return result;
          }
          // As with Nest, only an observable of the handler ends when the client goes away.
          watch = router.fromClientDisconnect(request, response).subscribe(() => {
            isGone = true;
            gone.next(true);
          });
          return result.pipe(tap((each) => router.trackHandlerStream(each, streams)));
        };
        let result: unknown;
        try {
          result = await lastValueFrom(intercepted(outer, context, callHandler).pipe(takeUntil(gone)));
        } catch (error) {
          streams.forEach(destroyUnsentBody);
          if (isGone && error instanceof EmptyError) return;
          throw error;
        } finally {
          isOver = true;
          watch?.unsubscribe();
        }
        if (isGone) [result, ...streams].forEach(destroyUnsentBody);
        else if (streams.length === 0 && isValue(result))
          // Awaited only if the response waits for its turn.
          await applicationRef.reply(response, result);
        else await sendByNest(of(result), response, request, NEVER, streams);
      };

      // Runs for every request. Nothing here is an `async` function that need not wait: each would cost a promise.
      return async (...message) => {
        const [request, response] = message;
        if (guards.length > 0) {
          // Not shared with the interceptors, as with Nest: guards and interceptors may modify theirs.
          const context = new ExecutionContextHost(message.slice(), controller, callback);
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
        const context = new ExecutionContextHost(message.slice(), controller, callback);
        if (outer.length > 0) return callInterceptors(context, message);
        for (const interceptor of before) interceptor.before(context);
        let result = await handle(message);
        if (isObservable(result) && after.length > 0) result = await lastValueFrom(result);
        for (const interceptor of after) result = interceptor.after(result, context);
        // A promise if the response waits for its turn.
        if (isValue(result)) return applicationRef.reply(response, result) as undefined;
        await sendByNest(result, response, request);
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

/** The arguments of a handler, or a promise of them. As with Nest, the pipes of all run at the same time. */
function valuesOf(
  args: readonly Argument[],
  message: Message,
  markRejected: (request: unknown) => void,
): unknown[] | Promise<unknown[]> {
  const values: unknown[] = [];
  const pending: Promise<unknown>[] = [];
  const reject = (error: unknown): never => {
    markRejected(message[0]);
    throw error;
  };
  try {
    for (const { index, extract, isPiped, pipes, metadata } of args) {
      let value = extract(...message);
      let passed = 0;
      while (passed < pipes.length && typeof (value as Awaitable)?.then !== 'function') {
        // A fresh object: pipes may keep or modify it.
        value = (pipes[passed++] as PipeTransform).transform(value, { ...metadata });
      }
      values[index] = value;
      if (isPiped && typeof (value as Awaitable)?.then === 'function') {
        const settled = passThrough(pipes.slice(passed), value, metadata);
        pending.push(settled.then((each) => (values[index] = each)));
      }
    }
  } catch (error) {
    // Nobody else awaits the others.
    void Promise.allSettled(pending);
    return reject(error);
  }
  return pending.length === 0 ? values : Promise.all(pending).then(() => values, reject);
}

async function passThrough(pipes: readonly PipeTransform[], value: unknown, metadata: ArgumentMetadata) {
  for (const pipe of pipes) value = pipe.transform(await value, { ...metadata }) as unknown;
  return value;
}

function isDirect(interceptor: NestInterceptor): interceptor is DirectInterceptor {
  return interceptor.intercept === DirectInterceptor.prototype.intercept;
}

/**
 * What the interceptors from the one at `index` on make of what the handler returns. Each subscription calls them anew, in the
 * asynchronous context in which `handle` was called.
 */
function intercepted(
  interceptors: readonly NestInterceptor[],
  context: ExecutionContext,
  callHandler: () => Promise<unknown>,
  index = 0,
): Observable<unknown> {
  const scope = new AsyncResource('interceptor');
  const interceptor = interceptors[index];
  const next = { handle: () => intercepted(interceptors, context, callHandler, index + 1) };
  const call = async (subscriber: Subscriber<unknown>): Promise<ObservableInput<unknown>> => {
    if (interceptor) return interceptor.intercept(context, next);
    // As with Nest, an interceptor that unsubscribes at once does not call the handler.
    await Promise.resolve();
    if (subscriber.closed) return EMPTY;
    const result = await callHandler();
    return isObservable(result) ? result : of(result);
  };
  return new Observable((subscriber) => {
    const subscription = new Subscription();
    scope
      .runInAsyncScope(call, undefined, subscriber)
      .then((made) => !subscriber.closed && subscription.add(from(made).subscribe(subscriber)))
      .catch((error: unknown) => subscriber.error(error));
    return subscription;
  });
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
