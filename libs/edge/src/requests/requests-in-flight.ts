import type { Request } from 'express';
import { type ApiError, serviceUnavailable } from '#errors';
import type { RequestContext } from './request-context.js';
import type { ClientId } from './turns.js';

/** The refusal of a request that gets no place. */
export const TOO_MANY_IN_FLIGHT = serviceUnavailable('requests_in_flight');

/** Served even under overload: load balancers and Prometheus judge the process by these paths. */
const EXEMPT_PATH = /^\/(health\/(live|ready)|metrics)(\?|$)/;

export function isExempt({ url }: Request): boolean {
  return EXEMPT_PATH.test(url);
}

/**
 * Counts the requests that this process works on, except while their bodies arrive, and refuses those beyond MAX_REQUESTS_IN_FLIGHT. A
 * quarter more places are kept for requests whose API key is known: those with unknown keys wait for their look-ups, and a flood of them
 * must not lock out the others.
 */
export class RequestsInFlight {
  count = 0;

  /** @param clientOf the client of a request, as far as it is known without waiting */
  constructor(
    private readonly limit: number,
    private readonly clientOf: (request: Request) => ClientId,
  ) {}

  /** Adds a request that is not in flight. If there is no place and its path is not exempt, adds nothing and returns the 503. */
  admit(request: Request): ApiError | undefined {
    if (this.count >= this.limit && !this.mayUseKept(request) && !isExempt(request)) return TOO_MANY_IN_FLIGHT;
    request.context.isInFlight = true;
    this.count++;
    return undefined;
  }

  release(context: RequestContext): void {
    if (!context.isInFlight) return;
    context.isInFlight = false;
    this.count--;
  }

  private mayUseKept(request: Request): boolean {
    return this.count < this.limit + Math.ceil(this.limit / 4) && this.clientOf(request) !== undefined;
  }
}
