import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { ApiKeyVerifier } from '../api-keys/api-key.verifier.js';
import type { StoredApiKey } from '../api-keys/stored-api-key.js';
import { ApiError } from '../errors/api-error.js';
import { RATE_LIMITED } from '../errors/error-catalogue.js';

/** Interval in ms at which the key of an open stream is checked. */
const CHECK_INTERVAL_MS = 500;

/** Most event streams that one key may have open in this process. */
export const MAX_STREAMS_PER_KEY = 100;

/** The open event streams (`@Sse()`): a stream is cut when its key is revoked or expires. */
@Injectable()
export class EventStreams {
  /** The requests of open streams, each with the id of its key. */
  private readonly open = new Map<Request, bigint>();

  constructor(private readonly verifier: ApiKeyVerifier) {}

  /**
   * Counts a request for a stream, and checks its key until the response is over.
   *
   * @throws ApiError RATE_LIMITED beyond MAX_STREAMS_PER_KEY
   */
  admit(request: Request, { id }: StoredApiKey, token: string): void {
    if (request.context.isOver) return;
    const others = [...this.open.values()].filter((other) => other === id).length;
    if (others >= MAX_STREAMS_PER_KEY) {
      const message = `This API key has ${others} event streams open. Close one, and try again.`;
      throw new ApiError(RATE_LIMITED, message, { 'Retry-After': '10' });
    }
    this.open.set(request, id);
    const timer = setInterval(() => void this.check(request, token), CHECK_INTERVAL_MS);
    request.res?.once('close', () => {
      clearInterval(timer);
      this.open.delete(request);
    });
  }

  private async check(request: Request, token: string): Promise<void> {
    try {
      await this.verifier.verify(token);
    } catch (error) {
      // A stream stays open while the database is unreachable.
      if ((error as Partial<ApiError>).definition?.status === 401) request.res?.destroy();
    }
  }
}
