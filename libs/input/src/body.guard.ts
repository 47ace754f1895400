import { type CanActivate, type ExecutionContext, Injectable, SetMetadata, type Type } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request } from 'express';
import { DEPRECATION_METADATA, Deprecations } from '#deprecation';
import { type BodyPlan, MAX_BODY_LIMIT, type PlatformExpressAdapter } from '#http';
import { RouteParamtypes } from '#internals';
import { Config } from '#settings';
import { declaredTypesOf, type Handler, parametersOf } from './handler-parameters.js';

const { BODY, FILE, FILES, RAW_BODY, REQUEST } = RouteParamtypes;

const BODY_LIMIT_METADATA = 'platform:body-limit';

/**
 * Sets the largest body of a handler, or of every handler of a controller, instead of MAX_BODY_BYTES. A larger body is
 * answered 413, and so is a form of more than 1 MiB.
 *
 * @param bytes 1 to 16,777,216 (16 MiB)
 * @throws Error at start for any other number
 */
export function BodyLimit(bytes: number): ClassDecorator & MethodDecorator {
  if (!Number.isInteger(bytes) || bytes < 1 || bytes > MAX_BODY_LIMIT) {
    throw new Error(`@BodyLimit(${bytes}) must be a number of bytes from 1 to ${MAX_BODY_LIMIT}.`);
  }
  return SetMetadata(BODY_LIMIT_METADATA, bytes);
}

interface HandlerBody extends BodyPlan {
  /** The handler has a sunset, after which its body is not read: 410 comes before 415, 413 and 400. */
  readonly isDeprecated: boolean;
}

/**
 * Sets `request.body` to the parsed body, after the guards of the platform and before those of modules. Only for handlers
 * with `@Body()`, `@RawBody()`, `@Req()`, or a parameter decorator of a module, which may look at it; for all others the body
 * stays unread. If a middleware has read the body, such as `express.json()`, `request.body` keeps its value.
 *
 * `@ApiConsumes` names the media types, application/json by default; `@BodyLimit` sets the limit. A multipart body is left
 * to the handler's interceptor if `@ApiConsumes` names the type or a parameter takes the uploaded files.
 */
@Injectable()
export class BodyGuard implements CanActivate {
  /** By operation; null for a handler that takes no body: its body stays unread. */
  private readonly bodies = new Map<string, HandlerBody | null>();

  constructor(
    private readonly config: Config,
    private readonly deprecations: Deprecations,
    private readonly adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
  ) {}

  /** @throws what `BodyReader.read` throws, or OPERATION_REMOVED */
  canActivate(execution: ExecutionContext): true | Promise<true> {
    // Messages of gateways and microservices have no body.
    if (execution.getType() !== 'http') return true;
    const request = execution.getArgByIndex<Request>(0);
    const handlerBody = this.handlerBodyOf(request.context.operation as string, execution);
    if (handlerBody === null || request.body !== undefined || request.readableDidRead) return true;
    if (handlerBody.isDeprecated) this.deprecations.refuseRemoved(execution);
    const body = this.adapterHost.httpAdapter.bodies.read(request, handlerBody);
    if (body instanceof Promise) return body.then((read: unknown) => setBody(request, read));
    return setBody(request, body);
  }

  private handlerBodyOf(operation: string, execution: ExecutionContext): HandlerBody | null {
    let handlerBody = this.bodies.get(operation);
    if (handlerBody === undefined) {
      const handler = execution.getHandler() as Handler;
      const plan = bodyPlanOf(execution.getClass(), handler, this.config.maxBodyBytes);
      handlerBody = plan && { ...plan, isDeprecated: Reflect.hasMetadata(DEPRECATION_METADATA, handler) };
      this.bodies.set(operation, handlerBody);
    }
    return handlerBody;
  }
}

function setBody(request: Request, body: unknown): true {
  request.body = body;
  return true;
}

function bodyPlanOf(controller: Type, handler: Handler, serverMaxBytes: number): BodyPlan | null {
  const parameters = parametersOf(controller, handler);
  const has = (...sources: unknown[]): boolean => parameters.some(({ source }) => sources.includes(source));
  // Decorators made by `createParamDecorator` have no source.
  if (!has(BODY, RAW_BODY, REQUEST, undefined)) return null;
  const bodies = parameters.filter(({ source }) => source === BODY);
  // The class of the whole body, if one parameter takes it.
  const parameterType = bodies.length === 1 && bodies[0]?.data === undefined ? bodies[0]?.metatype : undefined;
  const types = declaredTypesOf(controller, handler);
  return {
    isRequired: has(BODY, RAW_BODY),
    leavesMultipart: has(FILE, FILES) || types?.some((name) => name.startsWith('multipart/')) === true,
    maxBytes: bodyLimitOf(handler) ?? bodyLimitOf(controller) ?? serverMaxBytes,
    keepsBytes: has(RAW_BODY, REQUEST),
    types,
    parameterType,
  };
}

function bodyLimitOf(target: Type | Handler): number | undefined {
  return Reflect.getMetadata(BODY_LIMIT_METADATA, target) as number | undefined;
}
