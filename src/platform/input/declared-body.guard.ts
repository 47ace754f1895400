import { type CanActivate, type ExecutionContext, Injectable, type Type } from '@nestjs/common';
import { GUARDS_METADATA, INTERCEPTORS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/internal';
import { ApplicationConfig } from '@nestjs/core';
import type { Request } from 'express';
import { DEPRECATION_METADATA } from '../deprecation/deprecation.js';
import { DeprecationInterceptor } from '../deprecation/deprecation.interceptor.js';
import { ApiError } from '../errors/api-error.js';
import { MISSING_BODY } from '../errors/error-catalogue.js';
import { PrecedingInterceptor } from '../internals/preceding-interceptor.js';
import { contentOf } from '../server/bodies/body-content.js';
import { isOfOtherType } from '../server/bodies/media-types.js';
import { type BodyPlan, bodyTypesOf } from '../server/requests/body-plan.js';
import { announcesBody } from '../server/requests/header-fields.js';
import { BODY_LIMIT_METADATA } from './body-limit.decorator.js';
import { declaredTypesOf, type Handler, type HandlerParameter, parametersOf } from './handler-parameters.js';
import { inputClassOf, isInputClass } from './properties/input-class.js';

const { BODY, RAW_BODY, REQUEST } = RouteParamtypes;

/** What the decorators of a handler say about its body. */
interface HandlerBody {
  readonly plan: BodyPlan;
  /** Code of a module may look at `request.body`: a guard, an interceptor, or a parameter that gets the request. */
  readonly isShown: boolean;
  /** The handler has a sunset, after which its body is not read. */
  readonly isDeprecated: boolean;
  /** A parameter takes the raw bytes (`@RawBody()`), which only the platform's reader keeps. */
  readonly takesBytes: boolean;
}

/**
 * Sets `bodyPlan`: which parts of the body the handler takes. The body is read later and only these parts are kept.
 *
 * Guards, interceptors and parameter decorators of modules expect the parsed body in `request.body`, as on stock Nest. If
 * a handler has any of them, the body is read here: after the guards of the platform and before those of modules.
 * `request.rawBody` then has its bytes. A body of a media type that the handler does not take, such as a form for multer,
 * stays unread. For all other handlers, `@Body()` starts the reading.
 *
 * `@ApiConsumes` names the media types, application/json by default; `@BodyLimit` sets the limit.
 */
@Injectable()
export class DeclaredBodyGuard implements CanActivate {
  /** Reflection is slow; its result is cached by controller and handler. */
  private readonly known = new WeakMap<Type, Map<unknown, HandlerBody>>();

  constructor(
    private readonly application: ApplicationConfig,
    private readonly deprecation: DeprecationInterceptor,
  ) {}

  /** @throws ApiError for a body that cannot be read, or OPERATION_REMOVED; RequestAbortedError */
  canActivate(execution: ExecutionContext): true | Promise<true> {
    // Messages of gateways and microservices, and resolvers of GraphQL, have no body of their own.
    if (execution.getType() !== 'http') return true;
    const handlerBody = this.handlerBodyOf(execution);
    const { plan, isShown, isDeprecated } = handlerBody;
    const request = execution.getArgByIndex<Request>(0);
    const { context } = request;
    if (context.body instanceof Promise) context.body = bodyByPlan(request, context.body, plan);
    context.bodyPlan = plan;
    if (!isShown) return true;
    if (isDeprecated) this.deprecation.refuseRemoved(execution);
    return showBody(request, handlerBody);
  }

  private handlerBodyOf(execution: ExecutionContext): HandlerBody {
    const controller = execution.getClass();
    const handler = execution.getHandler() as Handler;
    let ofController = this.known.get(controller);
    if (ofController === undefined) {
      ofController = new Map();
      this.known.set(controller, ofController);
    }
    let known = ofController.get(handler);
    if (known === undefined) {
      known = this.describe(controller, handler);
      ofController.set(handler, known);
    }
    return known;
  }

  private describe(controller: Type, handler: Handler): HandlerBody {
    const parameters = parametersOf(controller, handler);
    const isShown = this.isWatched() || hasWatchers(controller, handler) || parameters.some(mayLook);
    return {
      plan: bodyPlanOf(controller, handler, parameters, isShown),
      isShown,
      isDeprecated: Reflect.hasMetadata(DEPRECATION_METADATA, handler),
      takesBytes: parameters.some(({ source }) => source === RAW_BODY),
    };
  }

  /** Whether modules have global interceptors, or global guards that run after this one. */
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
 * The value of `request.body` when a middleware has asked for the body before the plan was known: the body was read as
 * JSON, or not at all.
 *
 * @param asked the promise that the middleware got
 * @returns a promise of the body by the plan; undefined if nothing was read, as of a form, which is no JSON: then the next
 *   access to `request.body` reads by the plan
 */
function bodyByPlan(request: Request, asked: Promise<unknown>, plan: BodyPlan): Promise<unknown> | undefined {
  const isRead = request.readableFlowing !== null;
  if (!isRead) return undefined;
  const isReadByPlan = plan.form === 'value' && !plan.needsAllDigits;
  if (isReadByPlan) return asked;
  const planned = asked.then(() => contentOf(request.rawBody as Buffer, 'application/json', plan));
  // The handler may have no `@Body()` that awaits the promise.
  planned.catch(() => undefined);
  return planned;
}

/** Sets `request.body` to the parsed body; to undefined without a body, or with one of another media type. */
function showBody(request: Request, { plan, takesBytes }: HandlerBody): true | Promise<true> {
  if (request.context.isBodySet) return true;
  if (takesBytes || (announcesBody(request) && !isOfOtherType(request, plan))) return showParsedBody(request, plan);
  // If the handler takes the body, the promise stays: unless a module reads the body, it rejects with the body's error.
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

/** Whether a parameter gets the request, or has a decorator of a module that may look at the body. */
function mayLook({ source, leavesBody }: HandlerParameter): boolean {
  return source === REQUEST || source === RAW_BODY || (source === undefined && !leavesBody);
}

/** Whether a handler or its controller has guards, or interceptors other than preceding ones. */
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
  // The class of the whole body, if one parameter takes it.
  const type = bodies.length === 1 && picked.length === 0 ? bodies[0]?.metatype : undefined;
  const types = declaredTypesOf(controller, handler);
  return {
    isTaken: bodies.length > 0 || parameters.some(({ source }) => source === RAW_BODY),
    types: types && bodyTypesOf(types),
    form: types && type === String ? 'text' : types && type === Buffer ? 'bytes' : 'value',
    maxBytes: bodyLimitOf(handler) ?? bodyLimitOf(controller),
    keepsBytes: isShown,
    members: flatMembersOf(type),
    needsAllDigits: bodies.some(({ metatype }) => isInputClass(metatype) && inputClassOf(metatype).needsAllDigits),
    picked: picked.length > 0 ? picked : undefined,
  };
}

function bodyLimitOf(target: Type | Handler): number | undefined {
  return Reflect.getMetadata(BODY_LIMIT_METADATA, target) as number | undefined;
}

/**
 * The names of the members, if none of them is an object or an array. Then the reader of bodies builds no other member, and
 * no value inside a member.
 */
function flatMembersOf(type: unknown): string[] | undefined {
  const properties = isInputClass(type) ? inputClassOf(type).properties : undefined;
  const isFlat = properties?.every(({ rule }) => !rule.nestedClass && !rule.isArray);
  return isFlat ? properties?.map(({ name }) => name) : undefined;
}
