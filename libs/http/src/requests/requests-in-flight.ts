import type { Request } from 'express';
import { type ApiError, serviceUnavailable } from '#errors';
import type { RequestContext } from './request-context.js';

/** The refusal of a request that gets no place. */
export const TOO_MANY_IN_FLIGHT = serviceUnavailable('requests_in_flight');

/** Served even under overload: load balancers and Prometheus judge the process by these paths. */
const EXEMPT_PATH = /^\/(health\/(live|ready)|metrics)(\?|$)/;

export function isExempt({ url }: Request): boolean {
  return EXEMPT_PATH.test(url);
}

/**
 * Counts the requests that this process works on, and refuses those beyond MAX_REQUESTS_IN_FLIGHT.
 *
 * A request is in flight from its start until its response is made, except while its body arrives: slow clients must not occupy the
 * places of others.
 */
export class RequestsInFlight {
  private taken = 0;

  constructor(private readonly limit: number) {}

  get count(): number {
    return this.taken;
  }

  /** Adds a request that is not in flight. If there is no place and its path is not exempt, adds nothing and returns the 503. */
  admit(request: Request): ApiError | undefined {
    if (this.taken >= this.limit && !isExempt(request)) return TOO_MANY_IN_FLIGHT;
    request.context.isInFlight = true;
    this.taken++;
    return undefined;
  }

  release(context: RequestContext): void {
    if (!context.isInFlight) return;
    context.isInFlight = false;
    this.taken--;
  }
}
