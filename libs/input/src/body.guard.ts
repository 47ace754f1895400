import { type CanActivate, type ExecutionContext, Inject, Injectable, SetMetadata, type Type } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request } from 'express';
import { type BodyPlan, type PlatformExpressAdapter, servedRequestOf } from '#edge';
import { ApiError, faultyInput, unstorableIn, VALIDATION_FAILED } from '#errors';
import { JSON_LIMITS, type JsonLimits } from '#json';
import { DirectInterceptor } from '#operations';
import { Config, integer, type SettingsOf } from '#settings';
import { declaredTypesOf } from './declared-types.internals.js';
import { ApplicationConfig, enhancersOf } from './enhancers.internals.js';
import { type Handler, parametersOf, type Source } from './handler-parameters.internals.js';
import { isInputClass } from './input-class.js';

export const BODY_SETTINGS = {
  maxBodyBytes: integer(
    'MAX_BODY_BYTES',
    65_536,
    [1_024, 16_777_216],
    'Largest request body in bytes. A larger body gets 413.',
  ),
};

const BODY_LIMITS = 'platform:body-limits';

/** The limits of one operation. */
interface OperationLimits extends JsonLimits {
  /** Largest body in bytes; `MAX_BODY_BYTES` if undefined. */
  readonly bytes?: number;
}

/** The largest limits: a body of so many values takes some tens of ms, in which the process does nothing else. */
const MOST = { values: 100_000, levels: 100, bytes: 16_777_216 };

/**
 * Sets how much the body of an operation may hold, such as a list of a thousand objects.
 *
 * @example `@Post('bulk') @BodyLimits({ values: 50_000, bytes: 4_194_304 }) addVisits(@Body() visits: NewVisits)`
 * @param limits `values` of JSON: values and member names together, {@link JSON_LIMITS} by default, 100 000 at most; objects, and
 *   numbers with an exponent or more than 15 characters, count twice. `levels` of JSON: nesting, at most 100. `bytes` of every type:
 *   in place of `MAX_BODY_BYTES`, at most 16 MiB
 * @throws Error at import time for a limit that is no integer from 1 to the largest
 */
export function BodyLimits(limits: Partial<OperationLimits>): MethodDecorator {
  const set = { ...JSON_LIMITS, ...limits };
  for (const name of ['values', 'levels', 'bytes'] as const) {
    const { [name]: value = 1 } = set;
    if (Number.isInteger(value) && value >= 1 && value <= MOST[name]) continue;
    throw new Error(`@BodyLimits: ${name} must be an integer from 1 to ${MOST[name]}.`);
  }
  return SetMetadata(BODY_LIMITS, set);
}

/**
 * Sets `request.body` to the parsed body, after the guards of the platform and before those of modules. Only for handlers
 * with `@Body()`, `@RawBody()`, `@Req()`, or a parameter decorator, a guard or an interceptor of a module, which may look at it. Of JSON
 * alone if the handler takes no body; before interceptors alone a body that cannot be read is undefined. A body that a middleware has
 * read stays. A multipart body is left to the handler's interceptor if `@ApiConsumes` names the type or a parameter takes the
 * uploaded files; so is that of a handler which takes none: a client that waits for `100 Continue` gets it behind the key.
 */
@Injectable()
export class BodyGuard implements CanActivate {
  /** By operation; null for a handler that takes no body: it is left to code of modules. */
  private readonly plans = new Map<string, GuardPlan | null>();

  constructor(
    @Inject(Config) private readonly config: SettingsOf<typeof BODY_SETTINGS>,
    private readonly adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
    private readonly application: ApplicationConfig,
  ) {}

  /** @throws what `BodyReader.read` throws; VALIDATION_FAILED for JSON that is no object or array, or text that cannot be stored */
  canActivate(execution: ExecutionContext): true | Promise<true> {
    // Messages of gateways and microservices have no body, nor have calls of code.
    const request = servedRequestOf(execution);
    if (request === undefined) return true;
    const operation = request.context.operation as string;
    let plan = this.plans.get(operation);
    if (plan === undefined) {
      plan = this.planOf(execution.getClass(), execution.getHandler() as Handler);
      this.plans.set(operation, plan);
    }
    if (request.body !== undefined || request.readableDidRead) return true;
    const { bodies } = this.adapterHost.httpAdapter;
    if (plan === null) return bodies.leave(request) ?? true;
    const declared = plan;
    const refused = (error: unknown): true => {
      if (declared.ignoresFaults && error instanceof ApiError && error.definition.status < 500) return true;
      throw error;
    };
    try {
      const body = bodies.read(request, declared);
      if (!(body instanceof Promise)) return setBody(request, body, declared);
      return body.then((read: unknown) => setBody(request, read, declared)).catch(refused);
    } catch (error) {
      return refused(error);
    }
  }

  private planOf(controller: Type, handler: Handler): GuardPlan | null {
    const { guards, interceptors } = enhancersOf(this.application, controller, handler);
    // The global guards of the platform come before those of modules.
    const hasGuard = guards.indexOf(this) < guards.length - 1;
    const isLookedAt =
      hasGuard ||
      interceptors.some((each) => !((typeof each === 'function' ? each.prototype : each) instanceof DirectInterceptor));
    const parameters = parametersOf(controller, handler);
    const has = (...sources: Source[]): boolean => parameters.some(({ source }) => sources.includes(source));
    // Decorators made by `createParamDecorator` have no source.
    const isTaken = has('BODY', 'RAW_BODY', 'REQUEST', undefined);
    if (!isTaken && !isLookedAt) return null;
    const bodies = parameters.filter(({ source }) => source === 'BODY');
    // The class of the whole body, if one parameter takes it.
    const parameterType = bodies.length === 1 && bodies[0]?.data === undefined ? bodies[0]?.metatype : undefined;
    const types = declaredTypesOf(controller, handler);
    const isMultipart = types?.some((name) => name.startsWith('multipart/')) === true;
    const limits = Reflect.getMetadata(BODY_LIMITS, handler) as OperationLimits | undefined;
    return {
      isRequired: has('BODY', 'RAW_BODY'),
      leavesMultipart: !isTaken || has('FILE', 'FILES') || isMultipart,
      isUnpiped: (has('REQUEST') || !isTaken) && bodies.length === 0,
      ignoresFaults: !isTaken && !hasGuard && !isMultipart,
      maxBytes: limits?.bytes ?? this.config.maxBodyBytes,
      limits: limits ?? JSON_LIMITS,
      keepsBytes: isLookedAt || has('RAW_BODY', 'REQUEST'),
      types: isTaken || isMultipart ? types : undefined,
      parameterType,
    };
  }
}

interface GuardPlan extends BodyPlan {
  /** Whether no pipe sees the body: the handler takes it from the request. */
  readonly isUnpiped: boolean;
  /** Whether a body that the client sent wrongly is left out, because only an interceptor might look at it. */
  readonly ignoresFaults: boolean;
}

function setBody(request: Request, body: unknown, { isUnpiped, types, parameterType }: GuardPlan): true {
  const isText = types !== undefined && parameterType === String;
  // As Express's parser: guards, interceptors and handlers of modules read members of the body without a look at its type.
  if (!isText && body !== undefined && (typeof body !== 'object' || body === null)) {
    const message = `the body must be a JSON object${isInputClass(parameterType) ? '' : ' or array'}`;
    throw faultyInput(VALIDATION_FAILED, [{ property: '', rule: 'type', message }]);
  }
  const fault = isUnpiped ? unstorableIn(body) : undefined;
  if (fault !== undefined) throw faultyInput(VALIDATION_FAILED, [fault]);
  request.body = body;
  return true;
}
