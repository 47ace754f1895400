import type { Request } from 'express';
import { type ApiError, serviceUnavailable } from '#errors';
import type { RequestContext } from './request-context.js';

const TOO_MANY_IN_FLIGHT = serviceUnavailable('requests_in_flight');

/** Served even under overload: load balancers and Prometheus judge the process by these paths. */
const EXEMPT_PATH = /^\/(health\/(live|ready)|metrics)(\?|$)/;

/**
 * Counts the requests that this process works on, and refuses those beyond MAX_REQUESTS_IN_FLIGHT.
 *
 * A request is in flight from its start until its response is made, except while its body arrives: slow clients must
 * not occupy the places of others.
 */
export class RequestsInFlight {
  count = 0;

  constructor(private readonly limit: number) {}

  /** Adds a request. If the limit is reached and the path is not exempt, adds nothing and returns the 503. */
  admit({ context, url }: Request): ApiError | undefined {
    if (this.count >= this.limit && !EXEMPT_PATH.test(url)) {
      context.isRefused = true;
      return TOO_MANY_IN_FLIGHT;
    }
    context.isInFlight = true;
    this.count++;
    return undefined;
  }

  release(context: RequestContext): void {
    if (context.isInFlight) {
      context.isInFlight = false;
      this.count--;
    }
  }
}
