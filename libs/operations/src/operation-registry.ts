import { HttpStatus, Inject, Injectable, RequestMethod, type Type } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import type { Response } from 'express';
import { hash } from 'node:crypto';
import { type ErrorDefinition, FAILURES_METADATA, type HeaderFields } from '#errors';
import { StartupError } from '#runtime';
import { Config } from '#settings';
import { OPEN_TO_METADATA, PUBLIC_METADATA, REQUIRED_SCOPES_METADATA } from './access.decorators.js';
import { type Deprecation, DEPRECATION_METADATA, type DeprecationConfig, deprecationFields } from './deprecation.js';
import { FAULT_DETAILS_METADATA } from './fault-details.js';
import { type Route, routeOf } from './routes.internals.js';

/** Metadata key of a handler that takes an `Idempotency-Key`. */
export const IDEMPOTENT_METADATA = 'platform:idempotent';

/** Metadata key of a handler: a function of the settings that makes a {@link ToSent}. */
export const TO_SENT_METADATA = 'platform:to-sent';

/** Makes the body that is sent of what the handler has returned, or an interceptor has put in its place. May set header fields. */
export type ToSent = (body: unknown, response: Response) => unknown;

/** What the decorators of a handler declare, read once. */
export interface Operation {
  readonly name: string;
  /** The operationId of `@ApiOperation`, else `<controller>.<method>`: what @nestjs/swagger gets. */
  readonly key: string;
  /** The handler has one method and belongs to a version. */
  readonly isListed: boolean;
  readonly isPublic: boolean;
  readonly scopes: readonly string[];
  /** @internal The SHA-256 of the token that opens the handler without a key (`@OpenTo`); undefined without one. */
  readonly tokenHash: Buffer | undefined;
  readonly isStream: boolean;
  readonly isIdempotent: boolean;
  readonly status: number;
  /** Whether the faults of an input are sent (`@FaultDetails()`). */
  readonly sendsFaults: boolean;
  /** What `TO_SENT_METADATA` makes of a body to be sent; undefined for the body itself. */
  readonly toSent: ToSent | undefined;
  /** The errors of `@FailsWith`. */
  readonly failures: readonly ErrorDefinition[];
  readonly deprecation: Deprecation | undefined;
  /** The header fields of `@Deprecated`, for every response after the guards. */
  readonly fields: HeaderFields;
  /** The time in ms since 1970 from which the operation answers 410; Infinity for never. */
  readonly removedAt: number;
}

/**
 * The handlers of all controllers. The name of each one is unique in the application: it is its operationId, and the
 * `operation` of log, metrics and usage. It is the `operationId` of `@ApiOperation`, else the name of the method, or, when an
 * earlier controller has taken that name, `<controller>_<method>`.
 *
 * Controllers are named in the order of their modules, so adding a module after the others renames nothing.
 */
@Injectable()
export class OperationRegistry {
  /** All operations by controller and handler, a method of the controller. */
  readonly all = new Map<Type, Map<object, Operation>>();
  /** All operations by what @nestjs/swagger gets: the operationId of `@ApiOperation`, else `<controller>.<method>`. */
  readonly byKey = new Map<string, Operation>();
  /** The handler of each name. */
  private readonly named = new Map<string, string>();

  /** @throws StartupError when two handlers would have the same name, or nothing says who may call one: the start fails */
  constructor(
    discovery: DiscoveryService,
    @Inject(Config) private readonly config: DeprecationConfig,
  ) {
    const undecided: string[] = [];
    // Several modules may register the same controller.
    for (const controller of new Set(discovery.getControllers().map(({ metatype }) => metatype as Type))) {
      const operations = new Map<object, Operation>();
      this.all.set(controller, operations);
      const prototype = controller.prototype as Record<string, object>;
      for (const method of new MetadataScanner().getAllMethodNames(prototype)) {
        const handler = prototype[method] as object;
        const route = routeOf(controller, handler);
        if (route !== undefined) operations.set(handler, this.describe(controller, handler, method, route, undecided));
      }
    }
    if (undecided.length > 0) {
      throw new StartupError(
        `Nothing says who may call ${undecided.join(', ')}. Add either @RequireScopes('thing:action'), @RequireScopes() ` +
          'for any API key, or @Public().',
      );
    }
  }

  /** The scopes that operations need, in alphabetical order. */
  get scopes(): string[] {
    return [...new Set([...this.byKey.values()].flatMap(({ scopes }) => scopes))].sort();
  }

  /** @param undecided gets a handler without `@RequireScopes` and `@Public()`, or that has both in one place */
  private describe(
    controller: Type,
    handler: object,
    methodName: string,
    { method, operationId, status, isStream, isNeutral }: Route,
    undecided: string[],
  ): Operation {
    const id = `${controller.name}.${methodName}`;
    const own = <T>(key: string): T | undefined => Reflect.getMetadata(key, handler) as T | undefined;
    // The handler's decorator overrides the controller's.
    const either = <T>(key: string): T | undefined =>
      own<T>(key) ?? (Reflect.getMetadata(key, controller) as T | undefined);
    const nearest = Reflect.hasMetadata(PUBLIC_METADATA, handler) ? handler : controller;
    const isPublic = either<boolean>(PUBLIC_METADATA);
    if (isPublic ? Reflect.hasOwnMetadata(REQUIRED_SCOPES_METADATA, nearest) : isPublic === undefined)
      undecided.push(id);
    const isIdempotent = own<boolean>(IDEMPOTENT_METADATA) ?? false;
    if (isPublic && isIdempotent) {
      throw new StartupError(`${id} cannot be @Public() and @Idempotent(): a key belongs to a client.`);
    }
    const token = (this.config as unknown as Record<string, string | undefined>)[own<string>(OPEN_TO_METADATA) ?? ''];
    const name = this.nameOf(id, operationId === undefined ? [methodName, id.replace('.', '_')] : [operationId]);
    const deprecation = own<Deprecation>(DEPRECATION_METADATA);
    const operation: Operation = {
      name,
      key: operationId ?? id,
      isListed: method !== RequestMethod.ALL && !isNeutral,
      isPublic: isPublic === true,
      scopes: isPublic === false ? (Reflect.getMetadata(REQUIRED_SCOPES_METADATA, nearest) as string[]) : [],
      tokenHash: token === undefined ? undefined : hash('sha256', token, 'buffer'),
      isStream,
      isIdempotent,
      status: status ?? (method === RequestMethod.POST ? HttpStatus.CREATED : HttpStatus.OK),
      sendsFaults: either<boolean>(FAULT_DETAILS_METADATA) ?? false,
      toSent: own<(config: Config) => ToSent>(TO_SENT_METADATA)?.(this.config),
      failures: either<ErrorDefinition[]>(FAILURES_METADATA) ?? [],
      deprecation,
      fields: deprecation ? deprecationFields(deprecation, name, this.config) : {},
      removedAt: deprecation && this.config.afterSunset === 'remove' ? deprecation.sunset.getTime() : Infinity,
    };
    this.byKey.set(operation.key, operation);
    return operation;
  }

  /** The first of the names that no other handler has. */
  private nameOf(handler: string, candidates: string[]): string {
    const name = candidates.find((candidate) => !this.named.has(candidate));
    const last = candidates.at(-1) as string;
    if (name === undefined || this.byKey.has(handler)) {
      throw new StartupError(
        `${this.named.get(last) ?? handler} and ${handler} would both be the operation '${last}'. ` +
          "Give one of them another name with @ApiOperation({ operationId: '…' }).",
      );
    }
    this.named.set(name, handler);
    return name;
  }
}
