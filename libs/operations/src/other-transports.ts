import type { INestApplication } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { StartupError } from '#runtime';
import { PUBLIC_METADATA } from './access.decorators.js';

/** Metadata keys of other packages of Nest. The packages are not imported: an application may not have them. */
const GATEWAY = 'websockets:is_gateway';
const HANDLERS: Readonly<Record<string, string>> = {
  'graphql:resolver_type': 'resolver',
  'microservices:pattern': 'message handler',
  'websockets:message_mapping': 'message handler',
};

/**
 * Stops the start if a WebSocket gateway, a GraphQL resolver or a message handler is not `@Public()`: the platform checks
 * API keys of HTTP requests only, so it would be open without any sign of it. One with `@Public()` checks the key itself.
 *
 * @throws StartupError that names them
 */
export function refuseUnprotectedHandlers(app: INestApplication): void {
  const discovery = app.get(DiscoveryService);
  const names = [...discovery.getProviders(), ...discovery.getControllers()].flatMap(({ metatype }) =>
    typeof metatype === 'function' ? unprotectedIn(metatype) : [],
  );
  if (names.length === 0) return;
  throw new StartupError(
    `The platform checks API keys of HTTP requests only, so nothing would protect ${[...new Set(names)].join(', ')}. ` +
      'Add @Public(), and check the key in the handler: await apiKeys.verify(token), with ApiKeysService.',
  );
}

/** The gateway and the handlers of a class that are not public, each with its kind. */
function unprotectedIn(metatype: object & { readonly name: string }): string[] {
  const isPublic = Reflect.getMetadata(PUBLIC_METADATA, metatype) === true;
  if (!isPublic && Reflect.hasMetadata(GATEWAY, metatype)) return [`the gateway ${metatype.name}`];
  const prototype = ((metatype as { prototype?: unknown }).prototype ?? {}) as Record<string, object>;
  return new MetadataScanner().getAllMethodNames(prototype).flatMap((name) => {
    const method = prototype[name] as object;
    const kind = Object.keys(HANDLERS).find((key) => Reflect.hasMetadata(key, method));
    return kind === undefined || ((Reflect.getMetadata(PUBLIC_METADATA, method) as boolean | undefined) ?? isPublic)
      ? []
      : [`the ${HANDLERS[kind]} ${metatype.name}.${name}`];
  });
}
