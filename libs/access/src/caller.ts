import {
  createParamDecorator,
  type ExecutionContext,
  type PipeTransform,
  type Type,
  UnauthorizedException,
} from '@nestjs/common';
import type { Request } from 'express';

/**
 * The sender of a request: of an API key, its client and scopes; else what an `Authenticator` has returned. A project declares the
 * members that its authenticators add: `declare module 'petstore-service/platform' { interface Caller { readonly tenant?: string } }`.
 */
export interface Caller {
  /**
   * The name of the application, not of its user: see `clientNameOf`. Limits, usage and idempotency keys belong to it,
   * and it shares them with API keys of a client with this name.
   */
  readonly client: string;
  /** For `@RequireScopes`. */
  readonly scopes: readonly string[];
}

export const CLIENT_NAME_RULE = `A client's name has 1 to 255 printable characters and no white space at its ends`;

export function isClientName(name: unknown): name is string {
  // \p{C} are unprintable characters; \p{Z} is white space, which is invisible at either end.
  const isPrintable = typeof name === 'string' && /^(?![\p{Z}])[^\p{C}]+(?<![\p{Z}])$/u.test(name);
  return isPrintable && name.length <= 255;
}

/**
 * The name of a client from somebody else's token or certificate, for `Caller.client`: a text of 1 to 255 printable characters, without
 * white space at its ends.
 *
 * @example return { client: clientNameOf(payload.azp), scopes };
 * @throws UnauthorizedException for anything else
 */
export function clientNameOf(claim: unknown): string {
  if (isClientName(claim)) return claim;
  throw new UnauthorizedException(`${CLIENT_NAME_RULE}.`);
}

/**
 * A parameter of a handler: who has sent the request, as `request.caller` has it for guards, interceptors and services. Undefined at
 * operations with `@Public()`, where nobody looks at a key.
 *
 * @example `@Get() @RequireScopes('orders:read') listOrders(@CurrentCaller() caller: Caller): Promise<Order[]>`
 */
export const CurrentCaller: (...pipes: (Type<PipeTransform> | PipeTransform)[]) => ParameterDecorator =
  createParamDecorator(
    (_: undefined, execution: ExecutionContext) => execution.switchToHttp().getRequest<Request>().caller,
  );

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- the way Express offers to extend its request
  namespace Express {
    interface Request {
      /** Who has sent the request. Set before the guards of modules; undefined at operations with `@Public()`. */
      caller?: Caller;
    }
  }
}
