import type { IncomingMessage } from 'node:http';
import {
  MAX_READ_AHEAD_BYTES,
  READ_AHEAD_CHUNKED_COST,
  READ_AHEAD_FIELD_COST,
  READ_AHEAD_REQUEST_COST,
} from '../requests/server-limits.js';

/** What a single read of Node holds at most, in bytes. */
const READ_BYTES = 64 * 1024;

/** Bounds the memory of all requests of this process that were read ahead of their turn. */
export class ReadAhead {
  private taken = 0;

  /** Takes memory for a request. Returns how many bytes, or undefined when too little is left; then takes nothing. */
  take(request: IncomingMessage): number | undefined {
    const bytes = costOf(request);
    if (this.taken + bytes > MAX_READ_AHEAD_BYTES) return undefined;
    this.taken += bytes;
    return bytes;
  }

  /** Gives memory back that was taken. */
  release(bytes: number): void {
    this.taken -= bytes;
  }
}

/** What a request and the part of its body that comes with the same read cost at most, in bytes. */
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
