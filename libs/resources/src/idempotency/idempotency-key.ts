import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ApiError, INVALID_IDEMPOTENCY_KEY } from '#errors';
import { countHeader } from '#edge';
import { IDEMPOTENCY_KEY_HEADER, IDEMPOTENT_METADATA, KEY_PATTERN } from '#operations';

const GRAMMAR = new RegExp(KEY_PATTERN);

/** The idempotency key of a request, with its client and operation. */
export class IdempotencyKey {
  /** Whether an earlier request was carried out, and this one got its response. Set when `Idempotency` has returned. */
  isReplayed = false;

  /** @internal */
  constructor(
    /** The client of the request's API key. Keys of different clients are independent. */
    readonly clientId: bigint,
    /** Method and route of the request, such as `POST /v1/orders`. */
    readonly operation: string,
    /** 1 to 255 characters of printable ASCII. */
    readonly value: string,
    /** Marks the response as repeated. */
    readonly markReplayed: () => void,
    /** The decoded path parameters, in the order of the route: a key belongs to one resource. */
    readonly path: readonly unknown[] = [],
  ) {}
}

const FIELD = IDEMPOTENCY_KEY_HEADER.toLowerCase();

const sentKey = createParamDecorator((_: unknown, execution: ExecutionContext) => {
  const http = execution.switchToHttp();
  const request = http.getRequest<Request>();
  const sent = request.headers[FIELD];
  if (sent === undefined) return undefined;
  const match = typeof sent === 'string' && countHeader(request, FIELD) === 1 ? GRAMMAR.exec(sent) : null;
  const [, bare, quoted] = match ?? [];
  const key = bare ?? quoted?.replace(/\\(.)/g, '$1');
  if (key === undefined) throw new ApiError(INVALID_IDEMPOTENCY_KEY);
  const { path } = request.route as { path: string };
  // Method and route, with the version. Names of path parameters are left out, because clients do not see them.
  const operation = `${request.method} ${request.baseUrl}${path.replace(/:\w+/g, ':')}`;
  // The start has made sure that the handler is not public.
  const markReplayed = (): void => void http.getResponse<Response>().setHeader('Idempotent-Replayed', 'true');
  const clientId = request.context.clientId as bigint;
  return new IdempotencyKey(clientId, operation, key, markReplayed, Object.values(request.params));
});

/**
 * A parameter decorator for handlers whose requests clients may repeat safely. The parameter is the `IdempotencyKey` of the
 * request, or undefined if none was sent; pass it to `Idempotency`. The document gets the header field and the
 * responses 400 `invalid_idempotency_key` and 422 `idempotency_key_reused`. A malformed key is refused before the members of
 * the body are checked. A key belongs to a client, so a `@Public()` handler with this decorator stops the start.
 *
 * @example `createOrder(@Body() order: NewOrder, @Idempotent() key?: IdempotencyKey): Promise<Order>`
 */
export function Idempotent(): ParameterDecorator {
  return (prototype, name, index) => {
    sentKey()(prototype, name, index);
    const handler = (prototype as Record<string | symbol, object>)[name as string] as object;
    Reflect.defineMetadata(IDEMPOTENT_METADATA, true, handler);
  };
}
