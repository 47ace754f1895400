import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { ApiError, RATE_LIMITED, toApiError } from '#errors';
import type { Operation } from '#operations';
import { ApiKeyVerifier, bearerTokenOf } from './api-key.verifier.js';
import { Authenticators } from './authenticator.js';
import type { RequestStep } from './request-step.js';
import { NO_KEY, type StoredApiKey } from './stored-api-key.js';

/** Interval in ms at which an `Authenticator` is asked again for the caller of an open stream. */
const ASK_INTERVAL_MS = 500;

/** Most event streams that one key may have open in this process. */
export const MAX_STREAMS_PER_KEY = 100;

/** The open event streams (`@Sse()`): a stream is cut when its key is revoked or expires, or no `Authenticator` knows its caller. */
@Injectable()
export class EventStreams implements RequestStep {
  readonly isForStreams = true;
  private readonly open = new Map<Request, bigint>();

  constructor(
    private readonly verifier: ApiKeyVerifier,
    private readonly authenticators: Authenticators,
  ) {}

  /**
   * Counts a request for a stream, and watches its key or caller until the response is over.
   *
   * @throws ApiError RATE_LIMITED beyond MAX_STREAMS_PER_KEY
   */
  admit(request: Request, _operation: Operation, { id, prefix }: StoredApiKey): void {
    if (request.res?.closed) return;
    const others = [...this.open.values()].filter((other) => other === id).length;
    if (others >= MAX_STREAMS_PER_KEY) {
      const message = `This API key has ${others} event streams open. Close one, and try again.`;
      throw new ApiError(RATE_LIMITED, message, { 'Retry-After': '10' });
    }
    this.open.set(request, id);
    const cut = (): void => void request.res?.destroy();
    const unwatch =
      prefix === NO_KEY ? this.askAgain(request, cut) : this.verifier.watch(bearerTokenOf(request) as string, cut);
    request.res?.once('close', () => {
      unwatch();
      this.open.delete(request);
    });
  }

  private askAgain(request: Request, cut: () => void): () => void {
    const ask = async (): Promise<void> => {
      try {
        if ((await this.authenticators.identify(request)) === undefined) cut();
      } catch (error) {
        // A stream stays open while the database is unreachable.
        if (toApiError(error).definition.status === 401) cut();
      }
    };
    const timer = setInterval(() => void ask(), ASK_INTERVAL_MS);
    return () => clearInterval(timer);
  }
}
