import type { ArgumentMetadata, ExecutionContext, INestApplication, NestInterceptor } from '@nestjs/common';
import { StreamableFile } from '@nestjs/common';
import type { InterceptorsConsumer, ParamsTokenFactory, PipesConsumer } from '@nestjs/core/internal';
import type { RouterExecutionContext } from '@nestjs/core/router/router-execution-context.js';
import { AsyncResource } from 'node:async_hooks';
import { createRequire } from 'node:module';
import { EMPTY, finalize, from, isObservable, map, Observable, ReplaySubject, Subscription, throwError } from 'rxjs';
import type { FastReach } from '#runtime';
import { DirectInterceptor } from './direct-interceptor.js';

/** The releases of `@nestjs/core` for which test/platform/handler-calls.spec.ts has passed. `npm run try:newest` tests others. */
export const TESTED_RELEASES = ['12.5.0', '12.5.1'];

/** The methods of Nest that are called or replaced, by their classes. */
const METHODS = {
  RouterExecutionContext:
    'createPipesFn, createHandleResponseFn, isPipeable, pickStreamingBody, reflectSse, reflectRenderTemplate',
  InterceptorsConsumer: 'intercept, createContext, transformDeferred',
  PipesConsumer: 'applyPipes',
  ParamsTokenFactory: 'exchangeEnumForString',
};

/** Imported dynamically, because a static import of a missing module would fail the start. */
const NEST: Record<string, unknown> = await Promise.all([
  import('@nestjs/core/internal'),
  import('@nestjs/core/router/router-execution-context.js'),
]).then(
  ([internal, router]) => ({ ...internal, ...router }),
  () => ({}),
);

/** How Nest calls handlers. */
export const HANDLER_CALLS: FastReach = {
  dependency: '@nestjs/core',
  touches: `executionContextCreator of its router; ${Object.entries(METHODS)
    .map(([name, methods]) => `${methods} of ${name}`)
    .join('; ')}`,
  why: 'pipes, interceptors and responses cost no promise where nothing needs to wait',
  fastPath: 'handler-calls',
  check: () => {
    for (const [name, methods] of Object.entries(METHODS)) {
      for (const method of methods.split(', ')) {
        const found = (NEST[name] as { prototype: Record<string, unknown> } | undefined)?.prototype[method];
        if (typeof found !== 'function') return `${name} has no method ${method}`;
        // The source of a method begins with its name; that of what a tool wraps around it does not.
        if (!new RegExp(`^(async )?${method}\\(`).test(String(found))) return `a tool has replaced ${name}.${method}`;
      }
    }
    const { version } = createRequire(import.meta.url)('@nestjs/core/package.json') as { version: string };
    if (TESTED_RELEASES.includes(version)) return undefined;
    return `release ${version} is not one of those that are tested, ${TESTED_RELEASES.join(', ')}`;
  },
};

/** The members of Nest's RouterExecutionContext that are used here; Nest declares some of them as private. */
interface HandlerCalls extends Pick<
  RouterExecutionContext,
  'applicationRef' | 'createPipesFn' | 'createHandleResponseFn' | 'isPipeable' | 'reflectSse' | 'reflectRenderTemplate'
> {
  readonly interceptorsConsumer: InterceptorsConsumer;
  readonly pipesConsumer: Pick<PipesConsumer, 'applyPipes'> & { readonly paramsTokenFactory: ParamsTokenFactory };
  pickStreamingBody(result: unknown, streams: readonly unknown[]): unknown;
}

type Awaitable = Partial<PromiseLike<unknown>> | null | undefined;
type CreateSend = HandlerCalls['createHandleResponseFn'];
type Send = (result: unknown, response: unknown, request: unknown, returned?: unknown, streams?: unknown[]) => unknown;
type Intercept = (...call: Parameters<InterceptorsConsumer['intercept']>) => Promise<unknown>;

/**
 * Lets an application call its handlers with fewer promises. Nest awaits each pipe of each parameter, each interceptor and the
 * response, and wraps each interceptor in four observables: for a short request as much work as all the rest. Here pipes,
 * interceptors and responses are awaited only if they are promises. Direct interceptors behind the last other one are plain calls;
 * the others need one observable each. Guards, the order of the steps, and all responses but values stay with Nest.
 *
 * Must be called before routes are registered, which `listen` does, and only if `HANDLER_CALLS` finds no difference.
 *
 * @returns why this application is left as it is; undefined if it was changed
 */
export function callHandlersDirectly(app: INestApplication): string | undefined {
  const { routesResolver } = app as {
    routesResolver?: { routerExplorer?: { executionContextCreator?: HandlerCalls } };
  };
  const calls = routesResolver?.routerExplorer?.executionContextCreator;
  const { prototype } = (NEST['RouterExecutionContext'] ?? {}) as { prototype?: object };
  if (calls === undefined || Object.getPrototypeOf(calls) !== prototype)
    return 'this application calls its handlers by another class';
  const { interceptorsConsumer } = calls;
  calls.createPipesFn = createPipes(calls);
  calls.createHandleResponseFn = createSend(calls, calls.createHandleResponseFn.bind(calls));
  interceptorsConsumer.intercept = createIntercept(calls, interceptorsConsumer.intercept.bind(interceptorsConsumer));
  return undefined;
}

/** As with Nest, the pipes of all parameters run at the same time. */
function createPipes(calls: HandlerCalls): HandlerCalls['createPipesFn'] {
  const { pipesConsumer } = calls;
  return (bound, parameters) => {
    if (parameters.length === 0) return null;
    const described = parameters.map(({ index, extractValue, type, pipes, data, schema, metatype }) => {
      const kind = pipesConsumer.paramsTokenFactory.exchangeEnumForString(type as never);
      /** False for parameters such as `@Req()`, which Nest passes unchanged even if they are promises. */
      const isPiped = calls.isPipeable(type);
      const metadata = {
        metatype: metatype as ArgumentMetadata['metatype'],
        type: kind,
        data,
        schema,
      } as ArgumentMetadata;
      return { index, extractValue, isPiped, pipes: isPiped ? [...bound, ...pipes] : [], metadata };
    });
    return (args, request, response, next) => {
      let pending: Promise<unknown>[] | undefined;
      try {
        for (const { index, extractValue, isPiped, pipes, metadata } of described) {
          let value: unknown = extractValue(request, response, next);
          let passed = 0;
          while (passed < pipes.length && typeof (value as Awaitable)?.then !== 'function') {
            // A fresh object: pipes may keep or modify it.
            value = pipes[passed++]?.transform(value, { ...metadata });
          }
          args[index] = value;
          if (!isPiped || typeof (value as Awaitable)?.then !== 'function') continue;
          const settled = pipesConsumer.applyPipes(value, metadata, pipes.slice(passed));
          (pending ??= []).push(settled.then((each) => (args[index] = each)));
        }
      } catch (error) {
        // Nobody else awaits the others.
        void Promise.allSettled(pending ?? []);
        throw error;
      }
      return pending && Promise.all(pending);
    };
  };
}

function createSend(calls: HandlerCalls, byNest: CreateSend): CreateSend {
  return (callback, isResponseHandled, redirect, status) => {
    const sendByNest = byNest(callback, isResponseHandled, redirect, status) as Send;
    if (isResponseHandled || redirect || calls.reflectRenderTemplate(callback) || calls.reflectSse(callback))
      return sendByNest;
    const send: Send = (result, response, request, returned, streams = []) => {
      const isValue =
        streams.length === 0 &&
        !isObservable(result) &&
        !(result instanceof StreamableFile) &&
        calls.pickStreamingBody(result, streams) === undefined;
      // A promise if the response waits for its turn.
      return isValue
        ? (calls.applicationRef.reply(response, result, status) as unknown)
        : sendByNest(result, response, request, returned, streams);
    };
    return send;
  };
}

/** The interceptors of a handler. */
interface Plan {
  /** All up to the last one that is not direct. */
  readonly outer: readonly NestInterceptor[];
  /** The direct ones behind them that have a method of their own, in the order of calls. */
  readonly before: readonly DirectInterceptor[];
  readonly after: readonly DirectInterceptor[];
}

function createIntercept(calls: HandlerCalls, byNest: Intercept): Intercept {
  const { interceptorsConsumer } = calls;
  /** By the list of a handler. Undefined for events: Nest sends their header section before the handler has returned. */
  const plans = new WeakMap<readonly NestInterceptor[], Plan | undefined>();
  return (interceptors, args, instance, callback, next, type) => {
    if (interceptors.length === 0) return next();
    if (!plans.has(interceptors))
      plans.set(interceptors, calls.reflectSse(callback) ? undefined : planOf(interceptors));
    const plan = plans.get(interceptors);
    if (plan === undefined) return byNest(interceptors, args, instance, callback, next, type);
    const { outer, before, after } = plan;
    const context = interceptorsConsumer.createContext(args, instance, callback);
    context.setType(type as string);
    const callInner = (): Promise<unknown> => {
      for (const interceptor of before) interceptor.before(context);
      return after.length === 0 ? next() : next().then((result) => callAfter(after, result, context));
    };
    return outer.length === 0 ? callInner() : callOuter(outer, context, callInner, interceptorsConsumer);
  };
}

function planOf(interceptors: readonly NestInterceptor[]): Plan {
  const { prototype } = DirectInterceptor;
  const isDirect = (each: NestInterceptor): boolean => each.intercept === prototype.intercept;
  const outer = interceptors.slice(0, interceptors.findLastIndex((each) => !isDirect(each)) + 1);
  const direct = interceptors.slice(outer.length) as DirectInterceptor[];
  return {
    outer,
    before: direct.filter((each) => each.before !== prototype.before),
    after: direct.filter((each) => each.after !== prototype.after).reverse(),
  };
}

function callAfter(interceptors: readonly DirectInterceptor[], result: unknown, context: ExecutionContext): unknown {
  const change = (value: unknown): unknown =>
    interceptors.reduce((each, interceptor) => interceptor.after(each, context), value);
  if (isObservable(result)) return result.pipe(map(change));
  try {
    return change(result);
  } catch (error) {
    // For an observable that fails, Nest closes the files that the handler returned.
    return throwError(() => error);
  }
}

/**
 * Resolves to the last value of the outermost interceptor. Resolves to an observable of it if it fails, so that Nest closes the files
 * that the handler returned, and as soon as the handler returns an observable, which Nest ends when the client goes away.
 */
function callOuter(
  outer: readonly NestInterceptor[],
  context: ExecutionContext,
  callInner: () => Promise<unknown>,
  consumer: InterceptorsConsumer,
): Promise<unknown> {
  return new Promise((resolve) => {
    const values = new ReplaySubject<unknown>(1);
    const watched = values.pipe(finalize(() => subscription.unsubscribe()));
    const callHandler = async (): Promise<unknown> => {
      const result = await callInner();
      if (isObservable(result)) resolve(watched);
      return result;
    };
    /** What the interceptors from the one at `index` on make of the result, in the asynchronous context of now. */
    const observe = (index: number): Observable<unknown> => {
      const scope = new AsyncResource('interceptor');
      return new Observable((subscriber) => {
        const call = async (): Promise<Observable<unknown>> => {
          const interceptor = outer[index];
          if (interceptor) return interceptor.intercept(context, { handle: () => observe(index + 1) });
          // As with Nest, an interceptor that unsubscribes at once does not call the handler.
          await Promise.resolve();
          return subscriber.closed ? EMPTY : consumer.transformDeferred(callHandler);
        };
        const inner = new Subscription();
        scope
          .runInAsyncScope(call)
          .then((made) => subscriber.closed || inner.add(from(made).subscribe(subscriber)))
          .catch((error: unknown) => subscriber.error(error));
        return inner;
      });
    };
    let last: unknown = watched;
    const subscription = observe(0).subscribe({
      next: (value) => values.next((last = value)),
      error: (error) => resolve((values.error(error), watched)),
      complete: () => resolve((values.complete(), isObservable(last) ? watched : last)),
    });
  });
}
