import { type CanActivate, type ExecutionContext, Injectable, type Type } from '@nestjs/common';
import { GUARDS_METADATA, INTERCEPTORS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/internal';
import { ApplicationConfig } from '@nestjs/core';
import type { Request } from 'express';
import { DEPRECATION_METADATA } from '../deprecation/deprecation.js';
import { DeprecationInterceptor } from '../deprecation/deprecation.interceptor.js';
import { ApiError } from '../errors/api-error.js';
import { MISSING_BODY } from '../errors/error-catalogue.js';
import { PrecedingInterceptor } from '../fast-paths/preceding-interceptor.js';
import { jsonOf } from '../server/requests/body-content.js';
import { type BodyPlan, bodyTypesOf } from '../server/requests/body-plan.js';
import { announcesBody, isOfOtherType } from '../server/requests/request-body.js';
import { BODY_LIMIT_METADATA } from './body-limit.decorator.js';
import { declaredTypesOf, type Handler, type HandlerParameter, parametersOf } from './handler-parameters.js';
import { inputClassOf, isInputClass } from './properties/input-class.js';

const { BODY, RAW_BODY, REQUEST } = RouteParamtypes;

/** What is known of a handler. */
interface Known {
  readonly plan: BodyPlan;
  /** Code of a module may look at `request.body`: a guard, an interceptor, or a parameter that gets the request. */
  readonly isShown: boolean;
  /** It has a sunset, after which its body is not read. */
  readonly isDeprecated: boolean;
  /** A parameter takes the bytes, which nobody else but the platform's reader keeps. */
  readonly takesBytes: boolean;
}

/**
 * Sets what the handler takes of its body, before the body is read: the reader makes no value that nobody asked for.
 *
 * Guards, interceptors and parameter decorators of modules find the parsed body in `request.body`, as on stock Nest. So
 * where there are any, the body is read here: behind the guards of the platform, before those of modules; `request.rawBody`
 * has its bytes. A body of a type that the handler does not take stays unread for them, such as a form for multer. All other
 * handlers read their body when `@Body()` asks for it.
 *
 * The media types are those of `@ApiConsumes`, application/json without it; the limit is that of `@BodyLimit`.
 */
@Injectable()
export class DeclaredBodyGuard implements CanActivate {
  /** Reflection is slow and its result fixed, so each handler of each controller is looked at once. */
  private readonly known = new WeakMap<Type, Map<unknown, Known>>();

  constructor(
    private readonly application: ApplicationConfig,
    private readonly deprecation: DeprecationInterceptor,
  ) {}

  /** @throws ApiError of a body that cannot be read, OPERATION_REMOVED before it is read, and RequestAbortedError */
  canActivate(execution: ExecutionContext): true | Promise<true> {
    // Messages of gateways and microservices, and resolvers of GraphQL, have no body of their own.
    if (execution.getType() !== 'http') return true;
    const known = this.handlerOf(execution);
    const { plan, isShown } = known;
    const request = execution.getArgByIndex<Request>(0);
    const { context } = request;
    if (context.body instanceof Promise) context.body = askAgain(request, context.body, plan);
    context.bodyPlan = plan;
    if (!isShown) return true;
    if (known.isDeprecated) this.deprecation.refuseRemoved(execution);
    return showBody(request, known);
  }

  private handlerOf(execution: ExecutionContext): Known {
    const controller = execution.getClass();
    const handler = execution.getHandler() as Handler;
    let ofController = this.known.get(controller);
    if (ofController === undefined) {
      ofController = new Map();
      this.known.set(controller, ofController);
    }
    let known = ofController.get(handler);
    if (known === undefined) {
      const parameters = parametersOf(controller, handler);
      const isShown = this.isWatched() || hasWatchers(controller, handler) || parameters.some(mayLook);
      known = {
        plan: bodyPlanOf(controller, handler, parameters, isShown),
        isShown,
        isDeprecated: Reflect.hasMetadata(DEPRECATION_METADATA, handler),
        takesBytes: parameters.some(({ source }) => source === RAW_BODY),
      };
      ofController.set(handler, known);
    }
    return known;
  }

  /** Whether modules have bound guards behind this one, or interceptors, to the handlers of all modules. */
  private isWatched(): boolean {
    const guards = this.application.getGlobalGuards();
    return (
      guards.indexOf(this) < guards.length - 1 ||
      this.application.getGlobalRequestGuards().length > 0 ||
      this.application.getGlobalInterceptors().length > 0 ||
      this.application.getGlobalRequestInterceptors().length > 0
    );
  }
}

/**
 * What becomes of a body that a middleware has asked for, before it was known what the handler takes: it is forgotten if
 * nothing has been read yet, such as a form that was refused as JSON. Otherwise it has been read as JSON.
 */
function askAgain(request: Request, asked: Promise<unknown>, plan: BodyPlan): Promise<unknown> | undefined {
  if (request.readableFlowing === null) return undefined;
  const { form, needsAllDigits } = plan;
  if (form === 'value' && !needsAllDigits) return asked;
  const again = asked.then(() => {
    const bytes = request.rawBody as Buffer;
    if (form === 'value') return jsonOf(bytes, plan);
    return form === 'text' ? bytes.toString() : bytes;
  });
  // `@Body()` may never ask.
  again.catch(() => undefined);
  return again;
}

/** Replaces the promise in `request.body` by the parsed body. Without a body, or with one of another type, by nothing. */
function showBody(request: Request, { plan, takesBytes }: Known): true | Promise<true> {
  if (request.context.isBodySet) return true;
  if (takesBytes || (announcesBody(request) && !isOfOtherType(request, plan))) return showParsedBody(request, plan);
  // Where it is taken, the promise stays: it is rejected by what is wrong with the body, unless somebody else reads it.
  if (!plan.isTaken) request.body = undefined;
  return true;
}

async function showParsedBody(request: Request, plan: BodyPlan): Promise<true> {
  try {
    request.body = await (request.body as Promise<unknown>);
  } catch (error) {
    const isMissing = error instanceof ApiError && error.definition === MISSING_BODY;
    if (!isMissing || plan.isTaken) throw error;
    request.body = undefined;
  }
  return true;
}

/** Whether a parameter gets the request, or is made by a decorator of a module that may look at it. */
function mayLook({ source, leavesBody }: HandlerParameter): boolean {
  return source === REQUEST || source === RAW_BODY || (source === undefined && !leavesBody);
}

/** Whether guards, or interceptors that do more than precede, are bound to a handler or its controller. */
function hasWatchers(controller: Type, handler: Handler): boolean {
  return [controller, handler].some(
    (target) =>
      Reflect.hasMetadata(GUARDS_METADATA, target) ||
      ((Reflect.getMetadata(INTERCEPTORS_METADATA, target) ?? []) as unknown[]).some((bound) => !isPreceding(bound)),
  );
}

function isPreceding(interceptor: unknown): boolean {
  return typeof interceptor === 'function' && interceptor.prototype instanceof PrecedingInterceptor;
}

function bodyPlanOf(
  controller: Type,
  handler: Handler,
  parameters: readonly HandlerParameter[],
  isShown: boolean,
): BodyPlan {
  const bodies = parameters.filter(({ source }) => source === BODY);
  const picked = bodies.flatMap(({ data }) => data ?? []);
  const [whole] = bodies;
  const type = bodies.length === 1 && picked.length === 0 ? whole?.metatype : undefined;
  const properties = isInputClass(type) ? inputClassOf(type).properties : undefined;
  const isFlat = properties?.every(({ rule }) => !rule.nestedClass && !rule.isArray);
  const types = declaredTypesOf(controller, handler);
  const limits = [handler, controller].map(
    (target) => Reflect.getMetadata(BODY_LIMIT_METADATA, target) as number | undefined,
  );
  return {
    isTaken: bodies.length > 0 || parameters.some(({ source }) => source === RAW_BODY),
    types: types && bodyTypesOf(types),
    form: types && type === String ? 'text' : types && type === Buffer ? 'bytes' : 'value',
    maxBytes: limits[0] ?? limits[1],
    keepsBytes: isShown,
    members: isFlat ? properties?.map(({ name }) => name) : undefined,
    needsAllDigits: bodies.some(({ metatype }) => isInputClass(metatype) && inputClassOf(metatype).needsAllDigits),
    picked: picked.length > 0 ? picked : undefined,
  };
}
