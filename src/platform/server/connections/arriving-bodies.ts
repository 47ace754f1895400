import type { ApiError } from '../../errors/api-error.js';
import { serviceUnavailable } from '../../errors/service-unavailable.js';
import { MAX_ARRIVING_BODY_BYTES } from '../requests/server-limits.js';

const TOO_MANY_BODIES = serviceUnavailable('bodies');

/**
 * Bounds the memory of all bodies that are still arriving in this process, which `MAX_BODY_BYTES` does for each of them.
 * A body that has arrived with its header section takes none of it.
 */
export class ArrivingBodies {
  private taken = 0;

  /** Takes memory. Returns the 503 of a body for which too little is left, and then takes nothing. */
  take(bytes: number): ApiError | undefined {
    if (this.taken + bytes > MAX_ARRIVING_BODY_BYTES) return TOO_MANY_BODIES;
    this.taken += bytes;
    return undefined;
  }

  /** Gives memory back that was taken. */
  release(bytes: number): void {
    this.taken -= bytes;
  }
}
