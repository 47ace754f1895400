import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { ApiError, RATE_LIMITED, toApiError } from '#errors';
import type { StoredApiKey } from './stored-api-key.js';

/** Interval in ms at which the key of an open stream is checked. */
const CHECK_INTERVAL_MS = 500;

/** Most event streams that one key may have open in this process. */
export const MAX_STREAMS_PER_KEY = 100;

/** The open event streams (`@Sse()`): a stream is cut when its key is revoked or expires. */
@Injectable()
export class EventStreams {
  private readonly open = new Map<Request, bigint>();

  /**
   * Counts a request for a stream, and checks its key until the response is over.
   *
   * @param verify returns undefined or throws a 401 when the key is no longer valid
   * @throws ApiError RATE_LIMITED beyond MAX_STREAMS_PER_KEY
   */
  admit(request: Request, { id }: StoredApiKey, verify: () => unknown): void {
    if (request.context.isOver) return;
    const others = [...this.open.values()].filter((other) => other === id).length;
    if (others >= MAX_STREAMS_PER_KEY) {
      const message = `This API key has ${others} event streams open. Close one, and try again.`;
      throw new ApiError(RATE_LIMITED, message, { 'Retry-After': '10' });
    }
    this.open.set(request, id);
    const timer = setInterval(() => void check(request, verify), CHECK_INTERVAL_MS);
    request.res?.once('close', () => {
      clearInterval(timer);
      this.open.delete(request);
    });
  }
}

async function check({ res }: Request, verify: () => unknown): Promise<void> {
  try {
    if ((await verify()) !== undefined) return;
  } catch (error) {
    // A stream stays open while the database is unreachable.
    if (toApiError(error).definition.status !== 401) return;
  }
  res?.destroy();
}
