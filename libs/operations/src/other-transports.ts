import type { INestApplication } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { StartupError } from '#runtime';
import { PUBLIC_METADATA } from './access.decorators.js';
import { checkTransport, TRANSPORTS } from './transports.internals.js';

/** @throws StartupError when the handlers of a package would not be noticed by {@link refuseUnprotectedHandlers} */
export async function checkTransports(): Promise<void> {
  for (const transport of TRANSPORTS) await checkTransport(transport);
}

/**
 * Stops the start if a WebSocket gateway, a GraphQL resolver or a message handler is not `@Public()`: the platform checks
 * API keys of HTTP requests only, so it would be open without any sign of it. One with `@Public()` checks the key itself.
 *
 * @throws StartupError that names them
 */
export function refuseUnprotectedHandlers(app: INestApplication): void {
  const discovery = app.get(DiscoveryService);
  const names = [...discovery.getProviders(), ...discovery.getControllers()].flatMap(({ metatype, instance }) => {
    // A factory's function says nothing of the class that it makes.
    const made = (instance as object | null | undefined)?.constructor;
    return [...new Set([metatype, made])].flatMap((each) => (typeof each === 'function' ? unprotectedIn(each) : []));
  });
  if (names.length === 0) return;
  throw new StartupError(
    `The platform checks API keys of HTTP requests only, so nothing would protect ${[...new Set(names)].join(', ')}. ` +
      'Add @Public(), and check the key in the handler: await apiKeys.verify(token), with ApiKeysService.',
  );
}

/** The gateway and the handlers of a class that are not public, each with its kind. */
function unprotectedIn(type: object & { readonly name: string }): string[] {
  const isPublic = Reflect.getMetadata(PUBLIC_METADATA, type) === true;
  const kind = isPublic ? undefined : kindOf(type, 'classes');
  if (kind !== undefined) return [`the ${kind} ${type.name}`];
  const prototype = ((type as { prototype?: unknown }).prototype ?? {}) as Record<string, object>;
  return new MetadataScanner().getAllMethodNames(prototype).flatMap((name) => {
    const method = prototype[name] as object;
    const kind = kindOf(method, 'methods');
    return kind === undefined || ((Reflect.getMetadata(PUBLIC_METADATA, method) as boolean | undefined) ?? isPublic)
      ? []
      : [`the ${kind} ${type.name}.${name}`];
  });
}

function kindOf(target: object, of: 'classes' | 'methods'): string | undefined {
  const kinds = TRANSPORTS.flatMap((transport) => Object.entries(transport[of]));
  return kinds.find(([key]) => Reflect.hasMetadata(key, target))?.[1];
}
