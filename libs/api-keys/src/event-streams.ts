import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { ApiError, RATE_LIMITED, toApiError } from '#errors';
import type { Operation } from '#operations';
import { ApiKeyVerifier, bearerTokenOf } from './api-key.verifier.js';
import { Authenticators } from './authenticator.js';
import type { RequestStep } from './request-step.js';
import { NO_KEY, type StoredApiKey } from './stored-api-key.js';

/** Interval in ms at which the key of an open stream is checked. */
const CHECK_INTERVAL_MS = 500;

/** Most event streams that one key may have open in this process. */
export const MAX_STREAMS_PER_KEY = 100;

/** The open event streams (`@Sse()`): a stream is cut when its key is revoked or expires. */
@Injectable()
export class EventStreams implements RequestStep {
  readonly isForStreams = true;
  private readonly open = new Map<Request, bigint>();

  constructor(
    private readonly verifier: ApiKeyVerifier,
    private readonly authenticators: Authenticators,
  ) {}

  /**
   * Counts a request for a stream, and checks its key until the response is over.
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
    const timer = setInterval(() => void this.check(request, prefix), CHECK_INTERVAL_MS);
    request.res?.once('close', () => {
      clearInterval(timer);
      this.open.delete(request);
    });
  }

  private async check(request: Request, prefix: string): Promise<void> {
    try {
      if (prefix !== NO_KEY) await this.verifier.verify(bearerTokenOf(request) as string);
      else if ((await this.authenticators.identify(request)) === undefined) request.res?.destroy();
    } catch (error) {
      // A stream stays open while the database is unreachable.
      if (toApiError(error).definition.status === 401) request.res?.destroy();
    }
  }
}
