import type { Request } from 'express';
import type { Operation } from '#operations';
import type { StoredApiKey } from './stored-api-key.js';

/**
 * A step of `ApiKeyGuard` between the key and its scopes: for every request whose sender is known, also one that lacks a
 * scope. `request.context` has the client and the time.
 */
export interface RequestStep {
  /** Whether the step is left out of all operations but event streams. */
  readonly isForStreams?: boolean;
  /** Throws, or rejects, to refuse the request. Returns a promise only if it must wait. */
  admit(request: Request, operation: Pick<Operation, 'name'>, key: StoredApiKey): void | Promise<void>;
}

/** Token of the array of all steps, in their order. */
export const REQUEST_STEPS = Symbol('REQUEST_STEPS');
