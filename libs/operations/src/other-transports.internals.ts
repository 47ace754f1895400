import type { INestApplication } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { StartupError } from '#runtime';
import { PUBLIC_METADATA } from './access.decorators.js';

/** Begin the metadata keys of classes and methods that get requests which are not of HTTP. An application may not have the packages. */
const GATEWAY = /^websockets:/;
const HANDLER = /^(graphql:resolve|microservices:|websockets:)/;

/**
 * Stops the start if a WebSocket gateway, a GraphQL resolver or a message handler is not `@Public()`: the platform checks
 * API keys of HTTP requests only, so it would be open without any sign of it. One with `@Public()` checks the key itself.
 *
 * @throws StartupError that names them
 */
export function refuseUnprotectedHandlers(app: INestApplication): void {
  const discovery = app.get(DiscoveryService);
  const names = [...discovery.getProviders(), ...discovery.getControllers()].flatMap(({ metatype, instance }) =>
    // A factory's function says nothing of the class that it makes.
    [metatype, (instance as object | null | undefined)?.constructor].flatMap((type) =>
      typeof type === 'function' ? unprotectedIn(type) : [],
    ),
  );
  if (names.length === 0) return;
  throw new StartupError(
    `The platform checks API keys of HTTP requests only, so nothing would protect ${[...new Set(names)].join(', ')}. ` +
      'Add @Public(), and check the key in the handler: await apiKeys.verify(token), with ApiKeysService.',
  );
}

/** The gateway and the handlers of a class that are not public. */
export function unprotectedIn(type: object & { readonly name: string }): string[] {
  const isPublic = Reflect.getMetadata(PUBLIC_METADATA, type) === true;
  if (!isPublic && hasKey(type, GATEWAY)) return [type.name];
  const prototype = ((type as { prototype?: unknown }).prototype ?? {}) as Record<string, object>;
  return new MetadataScanner()
    .getAllMethodNames(prototype)
    .filter((name) => {
      const method = prototype[name] as object;
      return hasKey(method, HANDLER) && !((Reflect.getMetadata(PUBLIC_METADATA, method) as unknown) ?? isPublic);
    })
    .map((name) => `${type.name}.${name}`);
}

function hasKey(target: object, pattern: RegExp): boolean {
  return Reflect.getMetadataKeys(target).some((key) => pattern.test(String(key)));
}
