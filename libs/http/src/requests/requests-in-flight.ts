import type { Request } from 'express';
import { type ApiError, serviceUnavailable } from '#errors';
import type { RequestContext } from './request-context.js';
import { placesKept } from './server-limits.js';
import type { ClientId } from './turns.js';

/** The refusal of a request that gets no place. */
export const TOO_MANY_IN_FLIGHT = serviceUnavailable('requests_in_flight');

/** Served even under overload: load balancers and Prometheus judge the process by these paths. */
const EXEMPT_PATH = /^\/(health\/(live|ready)|metrics)(\?|$)/;

export function isExempt({ url }: Request): boolean {
  return EXEMPT_PATH.test(url);
}

/**
 * Counts the requests that this process works on, and refuses those beyond MAX_REQUESTS_IN_FLIGHT. When these places are taken,
 * a client that holds less than its even share of them gets one of those that are kept for such clients (`placesKept`). The
 * requests without a known API key count as one client.
 *
 * A request is in flight from its start until its response is made, except while its body arrives and while a refusal is
 * delayed: slow clients must not occupy the places of others.
 */
export class RequestsInFlight {
  private readonly places = new Set<RequestContext>();

  /** @param clientOf the client of a request, as far as it is known without waiting */
  constructor(
    private readonly limit: number,
    private readonly clientOf: (request: Request) => ClientId,
  ) {}

  get count(): number {
    return this.places.size;
  }

  /** Adds a request. If it gets no place and its path is not exempt, adds nothing and returns the 503. */
  admit(request: Request): ApiError | undefined {
    if (this.places.size >= this.limit && !this.hasShareLeft(request) && !isExempt(request)) return TOO_MANY_IN_FLIGHT;
    this.places.add(request.context);
    return undefined;
  }

  release(context: RequestContext): void {
    this.places.delete(context);
  }

  private hasShareLeft(request: Request): boolean {
    if (this.places.size >= this.limit + placesKept(this.limit)) return false;
    const client = this.clientOf(request);
    const clients = new Set([client]);
    let held = 0;
    for (const { clientId } of this.places) {
      clients.add(clientId);
      if (clientId === client) held++;
    }
    return held < this.limit / clients.size;
  }
}
