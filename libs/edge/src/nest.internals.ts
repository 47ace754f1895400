import {
  type ArgumentMetadata,
  type ExecutionContext,
  ForbiddenException,
  type INestApplication,
  type PipeTransform,
  StreamableFile,
} from '@nestjs/common';
import { destroyUnsentBody } from '@nestjs/core/helpers/destroy-unsent-body.js';
import {
  type ContextUtils,
  ExecutionContextHost,
  FORBIDDEN_MESSAGE,
  type GuardsConsumer,
  type GuardsContextCreator,
  type InterceptorsContextCreator,
  ParamsTokenFactory,
  type PipesConsumer,
  type PipesContextCreator,
  STATIC_CONTEXT,
} from '@nestjs/core/internal';
import { markRejectedByPipes } from '@nestjs/core/router/rejected-by-pipes.js';
import type { ParamProperties, RouterExecutionContext } from '@nestjs/core/router/router-execution-context.js';
import type { CustomHeader, RouterResponseController } from '@nestjs/core/router/router-response-controller.js';
import { isStreamingBody } from '@nestjs/core/router/streaming-body.js';
import { isObservable, map } from 'rxjs';
import { DirectInterceptor } from '#operations';

type Creation = Parameters<RouterExecutionContext['create']>;
type Call = (request: unknown, response: unknown, next: () => void) => Promise<void>;
type Parameter = ParamProperties & { readonly metatype?: ArgumentMetadata['metatype'] };
type Awaitable = Partial<PromiseLike<unknown>> | null | undefined;

/** The members of Nest's RouterExecutionContext that are used here; Nest declares some of them as private. */
interface HandlerCalls extends Pick<
  RouterExecutionContext,
  'applicationRef' | 'create' | 'getMetadata' | 'isPipeable' | 'reflectRedirect' | 'reflectRenderTemplate'
> {
  readonly contextUtils: ContextUtils;
  readonly guardsConsumer: GuardsConsumer;
  readonly guardsContextCreator: GuardsContextCreator;
  readonly interceptorsContextCreator: InterceptorsContextCreator;
  readonly pipesConsumer: PipesConsumer;
  readonly pipesContextCreator: PipesContextCreator;
  readonly responseController: RouterResponseController;
  isResponseHandled(instance: object, methodName: string, parameters: readonly Parameter[]): boolean;
}

/**
 * Lets an application call its handlers with fewer promises: Nest's own are as much work as all the rest of a short request. Nest itself
 * calls the handlers that do more: those with another interceptor than a `DirectInterceptor`, those that are made for each request, those
 * that send events, redirect, render or write the response themselves, and all if a tool has replaced `create` of RouterExecutionContext.
 *
 * Must be called before routes are registered, which `listen` does.
 */
export function callHandlersDirectly(app: INestApplication): void {
  const { routesResolver } = app as unknown as {
    routesResolver: { routerExplorer: { executionContextCreator: HandlerCalls } };
  };
  const calls = routesResolver.routerExplorer.executionContextCreator;
  const { create } = calls;
  // The source of a method begins with its name; that of what a tool wraps around it does not.
  if (!/^create\(/.test(String(create))) return;
  calls.create = (...creation) =>
    (createCall(calls, creation) as ReturnType<typeof create>) ?? create.apply(calls, creation);
}

/** How a handler is called; undefined if Nest should do it. */
function createCall(calls: HandlerCalls, creation: Creation): Call | undefined {
  const [instance, callback, methodName, module, requestMethod, contextId = STATIC_CONTEXT, inquirerId] = creation;
  // Nest makes the handlers of some controllers for each request.
  if (contextId !== STATIC_CONTEXT) return undefined;
  const bound = [instance, callback, module, contextId, inquirerId] as const;
  const { applicationRef, contextUtils, guardsConsumer, responseController } = calls;
  const handler = calls.getMetadata(instance, callback, methodName, module, requestMethod, 'http');
  const parameters: Parameter[] = contextUtils.mergeParamsMetatypes(
    handler.getParamsMetadata(module, contextId, inquirerId),
    handler.paramtypes,
  );
  const interceptors = calls.interceptorsContextCreator.create(...bound);
  const { prototype } = DirectInterceptor;
  if (
    handler.isSseHandler ||
    calls.reflectRedirect(callback) ||
    calls.reflectRenderTemplate(callback) ||
    calls.isResponseHandled(instance, methodName, parameters) ||
    !interceptors.every((each): each is DirectInterceptor => each.intercept === prototype.intercept)
  )
    return undefined;

  const before = interceptors.filter((each) => each.before !== prototype.before);
  const after = interceptors.filter((each) => each.after !== prototype.after).reverse();
  const pipes = calls.pipesContextCreator.create(...bound);
  const piped = parameters.filter(({ type }) => calls.isPipeable(type));
  contextUtils.warnOnMissingParamtypes(instance, methodName, handler.paramtypes, pipes, piped);
  const guards = calls.guardsContextCreator.create(...bound);
  const readArguments = createArguments(calls, parameters, pipes);
  const { argsLength, httpStatusCode, hasCustomHeaders } = handler;
  const responseHeaders = handler.responseHeaders as CustomHeader[];
  const sendByNest = handler.fnHandleResponse as (...parameters: unknown[]) => Promise<unknown>;
  const contextOf = (...message: Parameters<Call>): ExecutionContextHost =>
    new ExecutionContextHost(message, instance.constructor as never, callback);

  // Runs for every request. Nothing here is an `async` function that need not wait: each would cost a promise.
  return async (request, response, next) => {
    if (guards.length > 0) {
      // Not shared with the interceptors, as with Nest: guards and interceptors may change theirs.
      const context = contextOf(request, response, next);
      for (const guard of guards) {
        const verdict = guard.canActivate(context);
        if (verdict !== true && !(await guardsConsumer.pickResult(verdict)))
          throw new ForbiddenException(FORBIDDEN_MESSAGE);
      }
    }
    // Before the interceptors and the handler, which may change them.
    responseController.setStatus(response, httpStatusCode);
    if (hasCustomHeaders) responseController.setHeaders(response, responseHeaders);
    const context = interceptors.length > 0 ? contextOf(request, response, next) : undefined;
    for (const interceptor of before) interceptor.before(context as ExecutionContext);
    const args = Array<unknown>(argsLength);
    try {
      const pending = readArguments(args, request, response, next);
      if (pending) await pending;
    } catch (error) {
      markRejectedByPipes(request);
      throw error;
    }
    let result = callback.apply(instance, args);
    if (typeof (result as Awaitable)?.then === 'function') result = await result;
    if (after.length > 0) result = changed(after, result, context as ExecutionContext);
    // A promise if the response waits for its turn.
    if (isValue(result)) return applicationRef.reply(response, result) as Promise<void>;
    await sendByNest(result, response, request);
  };
}

/** As with Nest, the pipes of all parameters run at the same time. */
function createArguments(calls: HandlerCalls, parameters: readonly Parameter[], bound: readonly PipeTransform[]) {
  const tokens = new ParamsTokenFactory();
  const described = parameters.map(({ index, extractValue, type, pipes, data, schema, metatype }) => {
    /** False for parameters such as `@Req()`, which Nest passes unchanged even if they are promises. */
    const isPiped = calls.isPipeable(type);
    const metadata = { metatype, type: tokens.exchangeEnumForString(type as never), data, schema } as ArgumentMetadata;
    return { index, extractValue, isPiped, pipes: isPiped ? [...bound, ...pipes] : [], metadata };
  });
  return (args: unknown[], ...message: Parameters<Call>): Promise<unknown> | undefined => {
    let pending: Promise<unknown>[] | undefined;
    try {
      for (const { index, extractValue, isPiped, pipes, metadata } of described) {
        let value: unknown = extractValue(...message);
        let passed = 0;
        while (passed < pipes.length && typeof (value as Awaitable)?.then !== 'function') {
          // A fresh object: pipes may keep or modify it.
          value = pipes[passed++]?.transform(value, { ...metadata });
        }
        args[index] = value;
        if (!isPiped || typeof (value as Awaitable)?.then !== 'function') continue;
        const settled = calls.pipesConsumer.applyPipes(value, metadata, pipes.slice(passed));
        (pending ??= []).push(settled.then((each) => (args[index] = each)));
      }
    } catch (error) {
      // Nobody else awaits the others.
      void Promise.allSettled(pending ?? []);
      throw error;
    }
    return pending && Promise.all(pending);
  };
}

function changed(interceptors: readonly DirectInterceptor[], result: unknown, context: ExecutionContext): unknown {
  const change = (value: unknown): unknown =>
    interceptors.reduce((each, interceptor) => interceptor.after(each, context), value);
  if (isObservable(result)) return result.pipe(map(change));
  try {
    return change(result);
  } catch (error) {
    destroyUnsentBody(result);
    throw error;
  }
}

/** Whether Nest would send a result as it is: not an observable, a file or another stream. */
function isValue(result: unknown): boolean {
  return !isObservable(result) && !(result instanceof StreamableFile) && !isStreamingBody(result);
}
