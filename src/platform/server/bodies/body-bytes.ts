import type { IncomingMessage } from 'node:http';
import type { ApiError } from '../../errors/api-error.js';
import { RequestAbortedError } from '../../errors/request-aborted.error.js';
import { CHUNK_COST } from '../requests/server-limits.js';
import type { ArrivingBodies } from './arriving-bodies.js';
import { bodyTooLarge } from './body-content.js';

/**
 * Reads the whole body of a request.
 *
 * @param memory bounds the bytes of all bodies that are still arriving; undefined for a body that has arrived already
 * @throws ApiError BODY_TOO_LARGE, and the error of `memory`
 * @throws RequestAbortedError when the connection closes before the whole body has arrived
 */
export function readBytes(
  request: IncomingMessage,
  maxBytes: number,
  memory: ArrivingBodies | undefined,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (request.readableEnded) throw new Error('The body of this request has been read already.');
    const arrived = new ArrivedBytes(maxBytes, memory);
    let isSettled = false;
    const fail = (error: Error): void => {
      isSettled = true;
      arrived.free();
      reject(error);
    };
    const failAborted = (): void => {
      if (!isSettled) fail(new RequestAbortedError('The client closed the connection.'));
    };
    if (request.destroyed) {
      // The connection closed before this call, so no further event will arrive.
      failAborted();
      return;
    }
    // The listeners are never removed: that would cost more than checking `isSettled`.
    request.on('data', (chunk: Buffer) => {
      if (isSettled) return;
      const refusal = arrived.add(chunk);
      if (refusal) fail(refusal);
    });
    request.on('end', () => {
      if (isSettled) return;
      isSettled = true;
      resolve(arrived.whole());
      arrived.free();
    });
    request.on('error', failAborted).on('close', failAborted);
  });
}

/** The bytes of a body that have arrived so far, within the limit of the body and the memory of all bodies. */
class ArrivedBytes {
  private chunks: Buffer[] = [];
  private length = 0;
  /** Bytes taken from `memory`. */
  private taken = 0;

  constructor(
    private readonly maxBytes: number,
    private readonly memory: ArrivingBodies | undefined,
  ) {}

  /** Adds a chunk. Beyond a limit, returns the error instead. */
  add(chunk: Buffer): ApiError | undefined {
    this.length += chunk.length;
    if (this.length > this.maxBytes) return bodyTooLarge(this.maxBytes);
    if (this.memory !== undefined) {
      const cost = chunk.length + CHUNK_COST;
      const refusal = this.memory.take(cost);
      if (refusal) return refusal;
      this.taken += cost;
    }
    this.chunks.push(chunk);
    return undefined;
  }

  whole(): Buffer {
    return this.chunks.length === 1 ? (this.chunks[0] as Buffer) : Buffer.concat(this.chunks, this.length);
  }

  /** Gives the memory back. To be called once: the request's listeners keep this object as long as the request. */
  free(): void {
    this.memory?.release(this.taken);
    this.chunks = [];
  }
}
