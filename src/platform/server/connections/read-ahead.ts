import type { IncomingMessage } from 'node:http';
import {
  MAX_READ_AHEAD_BYTES,
  READ_AHEAD_CHUNKED_COST,
  READ_AHEAD_FIELD_COST,
  READ_AHEAD_REQUEST_COST,
} from '../requests/server-limits.js';

/** Largest size in bytes of one read of Node from a socket. */
const READ_BYTES = 64 * 1024;

/** Bounds the memory of all requests of this process that were read ahead of their turn. */
export class ReadAhead {
  private taken = 0;

  /** Takes memory for a request, and returns its bytes. If too little is left, takes nothing and returns undefined. */
  take(request: IncomingMessage): number | undefined {
    const bytes = costOf(request);
    if (this.taken + bytes > MAX_READ_AHEAD_BYTES) return undefined;
    this.taken += bytes;
    return bytes;
  }

  /** Gives taken memory back. */
  release(bytes: number): void {
    this.taken -= bytes;
  }
}

/** Upper bound, in bytes, for the memory of a request and of the part of its body that the same read may hold. */
function costOf({ url, headers, rawHeaders }: IncomingMessage): number {
  const body =
    headers['transfer-encoding'] === undefined
      ? Math.min(Number(headers['content-length'] ?? 0), READ_BYTES)
      : READ_AHEAD_CHUNKED_COST;
  return rawHeaders.reduce(
    (sum, text) => sum + text.length + READ_AHEAD_FIELD_COST,
    READ_AHEAD_REQUEST_COST + (url?.length ?? 0) + body,
  );
}
