/** Time in ms in which an empty bucket becomes full. */
export const WINDOW_MS = 60_000;

/**
 * Largest number of buckets. Beyond it, the bucket of the client with the oldest call is dropped; its next call starts with
 * a full one.
 */
const MAX_BUCKETS = 10_000;

interface Bucket {
  tokens: number;
  at: number;
}

/**
 * One token bucket per client, in this process. A bucket holds the calls of one minute and is refilled evenly. So an
 * idle client may send a minute's calls at once, and a busy one an even share per second.
 */
export class TokenBuckets {
  private readonly buckets = new Map<bigint, Bucket>();

  /**
   * Takes a token from a client's bucket. If the bucket has less than one, the call must be refused, and takes none.
   *
   * @param now in ms
   * @returns the number of tokens in the bucket, minus the token of this call; so it is negative if the call must be refused
   */
  take(client: bigint, perMinute: number, now: number): number {
    const bucket = this.buckets.get(client) ?? { tokens: perMinute, at: -Infinity };
    const refill = Math.max(0, now - bucket.at) * (perMinute / WINDOW_MS);
    const left = Math.min(perMinute, bucket.tokens + refill) - 1;
    bucket.tokens = tokensAfter(left);
    if (bucket.at !== now) {
      // The buckets stay in the order of the last calls.
      this.buckets.delete(client);
      this.buckets.set(client, bucket);
      const [oldest] = this.buckets.keys();
      if (this.buckets.size > MAX_BUCKETS) this.buckets.delete(oldest as bigint);
    }
    bucket.at = now;
    return left;
  }
}

/** The number of tokens in a bucket, from the result of `TokenBuckets.take`. */
export function tokensAfter(left: number): number {
  return left < 0 ? left + 1 : left;
}
