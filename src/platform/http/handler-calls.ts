import {
  type ArgumentMetadata,
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
import type { RouteParamtypes } from '@nestjs/common/internal';
import { type ParamProperties, RouterExecutionContext } from '@nestjs/core/router/router-execution-context.js';
import { JsonBody } from './json-body.js';

/** An interceptor that acts before the handler, and leaves what the handler returns or throws as it is. */
export interface PrecedingInterceptor extends NestInterceptor {
  /** All that `intercept` does before `next.handle()`, whose result it returns unchanged. May throw. */
  precede(context: ExecutionContext): void;
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
type Arguments = unknown[];

/**
 * Calls handlers as Nest does, in the same order: guards, interceptors, pipes, the handler, its answer.
 *
 * Nest makes a promise for each guard, for each pipe of each parameter, and for the answer, and puts an observable around
 * each interceptor: for a short request as much work as all the rest. Here only what is a promise is waited for, interceptors
 * that merely precede are plain calls, and a `JsonBody` is sent at once. Handlers with other interceptors, and those that
 * send events, are called by Nest itself.
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
    const sources = parameters.map((parameter) => ({
      index: parameter.index,
      extract: parameter.extractValue as ArgumentSource['extract'],
      pipes: this.isPipeable(parameter.type) ? [...pipes, ...parameter.pipes] : undefined,
      metadata: metadataOf(parameter),
    }));
    const answer = handler.fnHandleResponse as (...parameters: unknown[]) => Promise<unknown>;
    const sendsJson =
      !nest.isResponseHandled(instance, methodName, parameters) &&
      !this.reflectRedirect(callback) &&
      !this.reflectRenderTemplate(callback);

    return async (request, response, next) => {
      const context = new ExecutionContextHost([request, response, next], instance.constructor as never, callback);
      for (const guard of guards) {
        const verdict = guard.canActivate(context);
        if (verdict !== true && !(await nest.guardsConsumer.pickResult(verdict))) {
          throw new ForbiddenException(FORBIDDEN_MESSAGE);
        }
      }
      nest.responseController.setStatus(response, handler.httpStatusCode);
      if (handler.hasCustomHeaders) {
        nest.responseController.setHeaders(response, handler.responseHeaders);
      }
      for (const interceptor of interceptors) {
        interceptor.precede(context);
      }
      const args: Arguments = new Array<undefined>(handler.argsLength).fill(undefined);
      const pending = collect(args, sources, [request, response, next]);
      if (pending) {
        await pending;
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

/** Where an argument of a handler comes from. */
interface ArgumentSource {
  readonly index: number;
  readonly extract: (...message: Message) => unknown;
  /** Undefined for what Nest hands over as it is, even a promise. */
  readonly pipes: readonly PipeTransform[] | undefined;
  readonly metadata: ArgumentMetadata;
}

type Message = [request: unknown, response: unknown, next: unknown];

const tokens = new ParamsTokenFactory();

function metadataOf({ type, metatype, data, schema }: Parameter): ArgumentMetadata {
  return { type: tokens.exchangeEnumForString(type as RouteParamtypes), metatype, data, schema } as ArgumentMetadata;
}

/** Fills in the arguments, all that wait at the same time; a promise when there is one to wait for. */
function collect(args: unknown[], sources: readonly ArgumentSource[], message: Message): Promise<unknown> | undefined {
  let pending: Promise<unknown>[] | undefined;
  for (const { index, extract, pipes, metadata } of sources) {
    try {
      const extracted = extract(...message);
      const value = pipes ? pass(extracted, pipes, metadata) : extracted;
      if (pipes && isPromise(value)) {
        (pending ??= []).push(Promise.resolve(value).then((settled) => (args[index] = settled)));
      } else {
        args[index] = value;
      }
    } catch (error) {
      // Those behind it begin all the same, and the first to fail is the one that is told.
      (pending ??= []).push(Promise.reject(error));
    }
  }
  return pending && Promise.all(pending);
}

/** Passes a value through pipes; a promise as soon as it or one of them is. */
function pass(value: unknown, pipes: readonly PipeTransform[], metadata: ArgumentMetadata, first = 0): unknown {
  for (let index = first; ; index++) {
    if (isPromise(value)) {
      return Promise.resolve(value).then((settled) => pass(settled, pipes, metadata, index));
    }
    const pipe = pipes[index];
    if (pipe === undefined) return value;
    value = pipe.transform(value, metadata);
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return (
    value !== null &&
    (typeof value === 'object' || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}

function isPreceding(interceptor: NestInterceptor): interceptor is PrecedingInterceptor {
  return 'precede' in interceptor;
}

/**
 * Lets the handlers of an application, whose routes are not registered yet, be called so. Nest offers no other way to it than
 * its internals.
 *
 * @throws TypeError when this version of Nest has other internals
 */
export function callHandlersDirectly(app: INestApplication): void {
  const { routesResolver } = app as unknown as {
    routesResolver: { routerExplorer: { executionContextCreator: unknown } };
  };
  const calls = routesResolver.routerExplorer.executionContextCreator;
  if (!(calls instanceof RouterExecutionContext)) {
    throw new TypeError('This version of Nest calls handlers from elsewhere.');
  }
  Object.setPrototypeOf(calls, HandlerCalls.prototype);
}
