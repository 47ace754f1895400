import type { ApiError } from '../../errors/api-error.js';
import { serviceUnavailable } from '../../errors/service-unavailable.js';
import { MAX_ARRIVING_BODY_BYTES } from '../requests/server-limits.js';

const TOO_MANY_BODIES = serviceUnavailable('bodies');

/**
 * Bounds the memory of all bodies that are arriving or being decoded in this process; `MAX_BODY_BYTES` bounds a single
 * one. A body that has arrived together with its header section does not count, unless it is decoded.
 */
export class ArrivingBodies {
  private taken = 0;

  /** Takes memory. If too little is left, takes nothing and returns the 503. */
  take(bytes: number): ApiError | undefined {
    if (this.taken + bytes > MAX_ARRIVING_BODY_BYTES) return TOO_MANY_BODIES;
    this.taken += bytes;
    return undefined;
  }

  /** Gives taken memory back. */
  release(bytes: number): void {
    this.taken -= bytes;
  }
}
