import { Injectable, type Type } from '@nestjs/common';
import { PATH_METADATA } from '@nestjs/common/constants.js';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { DECORATORS } from '@nestjs/swagger';

/**
 * The name of each handler, unique in the application: its operationId, and the `operation` of log, metrics and usage. It is
 *
 * 1. the `operationId` of `@ApiOperation`,
 * 2. else the name of the method,
 * 3. or, when an earlier controller has taken that name, `<controller>_<method>`.
 *
 * Controllers are named in the order of their modules, so adding a module after the others renames nothing.
 */
@Injectable()
export class OperationNames {
  private byController: ReadonlyMap<unknown, ReadonlyMap<string, string>> | undefined;

  constructor(private readonly discovery: DiscoveryService) {}

  /**
   * The name of a method of a controller; undefined when it has no route.
   *
   * @throws Error when two handlers would have the same name; so such an application fails at start
   */
  of(controller: unknown, method: string): string | undefined {
    return (this.byController ??= this.nameAll()).get(controller)?.get(method);
  }

  private nameAll(): ReadonlyMap<unknown, ReadonlyMap<string, string>> {
    const taken = new Map<string, string>();
    const names = new Map<unknown, Map<string, string>>();
    // A Set, because several modules may register the same controller.
    for (const controller of new Set(this.discovery.getControllers().map(({ metatype }) => metatype as Type))) {
      const ofController = new Map<string, string>();
      for (const { method, ownId } of handlersOf(controller)) {
        const handler = `${controller.name}.${method}`;
        const candidates = ownId === undefined ? [method, `${controller.name}_${method}`] : [ownId];
        const name = candidates.find((candidate) => !taken.has(candidate));
        if (name === undefined) {
          const last = candidates.at(-1) as string;
          throw new Error(
            `${taken.get(last)} and ${handler} would both be the operation '${last}'. ` +
              "Give one of them another name with @ApiOperation({ operationId: '…' }).",
          );
        }
        taken.set(name, handler);
        ofController.set(method, name);
      }
      names.set(controller, ofController);
    }
    return names;
  }
}

/** The operationId that `@ApiOperation` gives a handler. */
export function ownIdOf(handler: object): string | undefined {
  const metadata = Reflect.getMetadata(DECORATORS.API_OPERATION, handler) as { operationId?: string } | undefined;
  return metadata?.operationId;
}

/** The methods of a controller that have a route. */
function handlersOf(controller: Type): { method: string; ownId: string | undefined }[] {
  const prototype = controller.prototype as Record<string, object>;
  return new MetadataScanner()
    .getAllMethodNames(prototype)
    .map((method) => ({ method, handler: prototype[method] as object }))
    .filter(({ handler }) => Reflect.hasMetadata(PATH_METADATA, handler))
    .map(({ method, handler }) => ({ method, ownId: ownIdOf(handler) }));
}
