import type { INestApplication, Type } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import type { Request } from 'express';
import { ApiKeyGuard } from '../auth/api-key.guard.js';
import { PUBLIC_METADATA } from '../auth/public.decorator.js';
import { isOfOtherType } from '../server/bodies/media-types.js';
import { announcesBody } from '../server/requests/header-fields.js';

/** The token of GraphQLModule's options, and the metadata key of resolver methods. */
export const GRAPHQL_OPTIONS = 'GqlModuleOptions';
const RESOLVER_TYPE = 'graphql:resolver_type';

/** The operation name of GraphQL requests in usage, log and metrics. */
const GRAPHQL = 'graphql';

/**
 * Protects the path of GraphQLModule, which answers it before any guard runs and then calls resolvers. The path needs a
 * key, unless a resolver is public; then the guard decides for each resolver. The GraphQL server finds the parsed body in
 * `request.body`, as on stock Nest.
 */
export function protectGraphql(app: INestApplication): void {
  const guard = app.get(ApiKeyGuard);
  const providers = app.get(DiscoveryService).getProviders();
  const isOpen = providers.some(({ metatype }) => isPublicResolver(metatype as Type | null));
  const prepare = async (request: Request): Promise<void> => {
    request.context.operation = GRAPHQL;
    if (!isOpen) await guard.admit(request, { operation: GRAPHQL, scopes: [] });
    await showJsonBody(request);
  };
  for (const { token, instance } of providers) {
    if (token !== GRAPHQL_OPTIONS) continue;
    const { path = '/graphql' } = (instance ?? {}) as { path?: string };
    app.use(path, (request: Request, _response: unknown, next: (error?: unknown) => void) => {
      prepare(request).then(() => next(), next);
    });
  }
}

/** Sets `request.body` to the parsed JSON. A body of another media type stays unread. */
async function showJsonBody(request: Request): Promise<void> {
  if (request.context.isBodySet) return;
  const isJson = announcesBody(request) && !isOfOtherType(request, { types: undefined });
  request.body = isJson ? await (request.body as Promise<unknown>) : undefined;
}

/** Whether a class has a public resolver method. */
function isPublicResolver(metatype: Type | null): boolean {
  const prototype = (metatype?.prototype ?? {}) as Record<string, unknown>;
  return new MetadataScanner().getAllMethodNames(prototype).some((name) => {
    const method = prototype[name] as object;
    return (
      Reflect.hasMetadata(RESOLVER_TYPE, method) &&
      [method, metatype as Type].some((target) => Reflect.hasMetadata(PUBLIC_METADATA, target))
    );
  });
}
