import { Injectable, type Type } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { DECORATORS } from '@nestjs/swagger';
import { StartupError } from '#errors';
import { PATH_METADATA, SSE_METADATA } from '#internals';
import { PUBLIC_METADATA, REQUIRED_SCOPES_METADATA } from './access.decorators.js';

/** What the platform knows of a handler before a request arrives. */
export interface Operation {
  readonly name: string;
  /** The operationId of `@ApiOperation`, else `<controller>.<method>`: what @nestjs/swagger gets. */
  readonly key: string;
  readonly isPublic: boolean;
  /** Whether the response is an event stream (`@Sse()`). */
  readonly isStream: boolean;
  /** The scopes that a key needs. */
  readonly scopes: readonly string[];
}

type Operations = ReadonlyMap<Type, ReadonlyMap<object, Operation>>;

/**
 * The handlers of all controllers. The name of each one is unique in the application: it is its operationId, and the
 * `operation` of log, metrics and usage. It is the `operationId` of `@ApiOperation`, else the name of the method, or, when an
 * earlier controller has taken that name, `<controller>_<method>`.
 *
 * Controllers are named in the order of their modules, so adding a module after the others renames nothing.
 */
@Injectable()
export class OperationRegistry {
  private byController: Operations | undefined;

  constructor(private readonly discovery: DiscoveryService) {}

  /**
   * All operations by controller and handler, a method of the controller.
   *
   * @throws Error when two handlers would have the same name, or nothing says who may call one; so such an application
   * fails at start
   */
  get all(): Operations {
    return (this.byController ??= this.readAll());
  }

  /** The scopes that operations need, in alphabetical order. */
  get scopes(): string[] {
    const operations = [...this.all.values()].flatMap((handlers) => [...handlers.values()]);
    return [...new Set(operations.flatMap(({ scopes }) => scopes))].sort();
  }

  /** The operation of a handler; undefined when it has no route. */
  of(controller: Type, handler: object): Operation | undefined {
    return this.all.get(controller)?.get(handler);
  }

  private readAll(): Operations {
    const taken = new Map<string, string>();
    // A Set, because several modules may register the same controller.
    const controllers = new Set(this.discovery.getControllers().map(({ metatype }) => metatype as Type));
    const undecided: string[] = [];
    const all = new Map([...controllers].map((controller) => [controller, operationsOf(controller, taken, undecided)]));
    if (undecided.length === 0) return all;
    throw new StartupError(
      `Nothing says who may call ${undecided.join(', ')}. Add either @RequireScopes('thing:action'), @RequireScopes() ` +
        'for any API key, or @Public().',
    );
  }
}

/**
 * @param taken the handler of each name so far
 * @param undecided gets the handlers without `@RequireScopes` and `@Public()`, and those that have both in one place
 */
function operationsOf(controller: Type, taken: Map<string, string>, undecided: string[]): Map<object, Operation> {
  const prototype = controller.prototype as Record<string, object>;
  const operations = new Map<object, Operation>();
  for (const method of new MetadataScanner().getAllMethodNames(prototype)) {
    const handler = prototype[method] as object;
    if (!Reflect.hasMetadata(PATH_METADATA, handler)) continue;
    const ownId = (Reflect.getMetadata(DECORATORS.API_OPERATION, handler) as { operationId?: string } | undefined)
      ?.operationId;
    // The handler's decorator overrides the controller's.
    const nearest = Reflect.hasMetadata(PUBLIC_METADATA, handler) ? handler : controller;
    const isPublic = Reflect.getMetadata(PUBLIC_METADATA, nearest) as boolean | undefined;
    const name = `${controller.name}.${method}`;
    if (isPublic ? Reflect.hasOwnMetadata(REQUIRED_SCOPES_METADATA, nearest) : isPublic === undefined) {
      undecided.push(name);
    }
    operations.set(handler, {
      name: nameOf(name, ownId, taken),
      key: ownId ?? name,
      isPublic: isPublic === true,
      isStream: Reflect.hasMetadata(SSE_METADATA, handler),
      scopes: isPublic === false ? (Reflect.getMetadata(REQUIRED_SCOPES_METADATA, nearest) as string[]) : [],
    });
  }
  return operations;
}

/** @param handler such as `OrdersController.listOrders` */
function nameOf(handler: string, ownId: string | undefined, taken: Map<string, string>): string {
  const method = handler.slice(handler.indexOf('.') + 1);
  const candidates = ownId === undefined ? [method, handler.replace('.', '_')] : [ownId];
  const name = candidates.find((candidate) => !taken.has(candidate));
  if (name === undefined) {
    const last = candidates.at(-1) as string;
    throw new Error(
      `${taken.get(last)} and ${handler} would both be the operation '${last}'. ` +
        "Give one of them another name with @ApiOperation({ operationId: '…' }).",
    );
  }
  taken.set(name, handler);
  return name;
}
