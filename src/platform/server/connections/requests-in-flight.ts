import type { Request } from 'express';
import { ApiError } from '../../errors/api-error.js';
import { UNAVAILABLE } from '../../errors/error-catalogue.js';
import type { RequestContext } from '../requests/request-context.js';

/** The 503 of a request beyond MAX_REQUESTS_IN_FLIGHT or MAX_CONNECTIONS. */
export const OVERLOADED = new ApiError(UNAVAILABLE, UNAVAILABLE.message, { 'Retry-After': '1' });

/** Served even under overload: load balancers and Prometheus judge the process by these paths. */
const EXEMPT_PATH = /^\/(health\/(live|ready)|metrics)(\?|$)/;

/** Whether a request target is served even under overload. */
export function isExempt(url: string): boolean {
  return EXEMPT_PATH.test(url);
}

/**
 * Counts the requests that this process works on, and refuses those beyond MAX_REQUESTS_IN_FLIGHT.
 *
 * A request is in flight from its start until its answer is made. The time in which its body arrives does not count, so
 * slow clients take no place of others.
 */
export class RequestsInFlight {
  private count = 0;

  constructor(private readonly limit: number) {}

  /** Adds a request. Returns false, and adds nothing, when the limit is reached and the path is not exempt. */
  admit({ context, url }: Request): boolean {
    if (this.count >= this.limit && !isExempt(url)) {
      context.isRefused = true;
      return false;
    }
    context.isInFlight = true;
    this.count++;
    return true;
  }

  /** Removes a request, if it is in flight. */
  release(context: RequestContext): void {
    if (context.isInFlight) {
      context.isInFlight = false;
      this.count--;
    }
  }

  /**
   * Reads a body that is still arriving. The request is not in flight until `read` has settled.
   *
   * @throws ApiError OVERLOADED when the limit is reached by then, and whatever `read` throws
   */
  async readMeanwhile<Result>(request: Request, read: () => Promise<Result>): Promise<Result> {
    this.release(request.context);
    const result = await read();
    if (!request.context.isOver && !this.admit(request)) throw OVERLOADED;
    return result;
  }
}
