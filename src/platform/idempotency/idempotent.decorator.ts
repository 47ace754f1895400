import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ApiError } from '../errors/api-error.js';
import { INVALID_IDEMPOTENCY_KEY } from '../errors/error-catalogue.js';
import { countHeader } from '../server/requests/request-checks.js';
import { IDEMPOTENCY_KEY_HEADER, IDEMPOTENT_REPLAYED_HEADER, IdempotencyKey, readKey } from './idempotency-key.js';

export const IDEMPOTENT_METADATA = 'petstore:idempotent';

const FIELD = IDEMPOTENCY_KEY_HEADER.toLowerCase();

const sentKey = createParamDecorator((_: unknown, execution: ExecutionContext) => {
  const http = execution.switchToHttp();
  return keyOf(http.getRequest<Request>(), http.getResponse<Response>());
});

/**
 * A parameter decorator for handlers whose requests clients may repeat safely. The parameter is the `IdempotencyKey` of the
 * request, or undefined if none was sent; pass it to `Idempotency`. The document gets the header field and the answers 400
 * `invalid_idempotency_key` and 422 `idempotency_key_reused`. The key is checked when the body has been read,
 * before its members are.
 *
 * A key belongs to a client, so the start fails for a `@Public()` handler with this decorator.
 */
export function Idempotent(): ParameterDecorator {
  return (prototype, name, index) => {
    sentKey()(prototype, name, index);
    const handler = (prototype as Record<string | symbol, object>)[name as string] as object;
    Reflect.defineMetadata(IDEMPOTENT_METADATA, true, handler);
  };
}

function keyOf(request: Request, response: Response): IdempotencyKey | undefined {
  const sent = request.headers[FIELD];
  if (sent === undefined) {
    return undefined;
  }
  const key = typeof sent === 'string' && countHeader(request, FIELD) === 1 ? readKey(sent) : undefined;
  if (key === undefined) {
    throw new ApiError(INVALID_IDEMPOTENCY_KEY);
  }
  const { clientId } = request.context;
  if (clientId === undefined) {
    throw new Error('@Idempotent() stands at a handler that no client is known to.');
  }
  return new IdempotencyKey(clientId, routeOf(request), key, () => {
    response.setHeader(IDEMPOTENT_REPLAYED_HEADER, 'true');
    request.context.isReplayed = true;
  });
}

/** Method and route, with the version. Names of path parameters are left out, because clients do not see them. */
function routeOf({ method, baseUrl, route }: Request): string {
  const { path } = route as { path: string };
  return `${method} ${baseUrl}${path.replace(/:\w+/g, ':')}`;
}
