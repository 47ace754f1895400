/** Length in ms of the window in which a full bucket is refilled. */
export const WINDOW_MS = 60_000;

/** Most clients that have a bucket in memory. Beyond them the one that has called least lately gets a full one. */
const MAX_BUCKETS = 10_000;

interface Bucket {
  tokens: number;
  at: number;
}

/**
 * A bucket of tokens for each client, in the memory of this process. A bucket holds what a client may call in a minute and
 * is refilled evenly, so that a client at rest may send that much at once, and one at work its share of every second.
 */
export class TokenBuckets {
  private readonly buckets = new Map<bigint, Bucket>();

  /**
   * Takes a token from a client's bucket.
   *
   * @param now in ms
   * @returns how many are left; below 0, by how many one was missing, when there was none to take
   */
  take(client: bigint, perMinute: number, now: number): number {
    const bucket = this.buckets.get(client) ?? { tokens: perMinute, at: now };
    const refill = Math.max(0, now - bucket.at) * (perMinute / WINDOW_MS);
    const left = Math.min(perMinute, bucket.tokens + refill) - 1;
    bucket.tokens = left < 0 ? left + 1 : left;
    bucket.at = now;
    this.putLast(client, bucket);
    return left;
  }

  private putLast(client: bigint, bucket: Bucket): void {
    this.buckets.delete(client);
    this.buckets.set(client, bucket);
    if (this.buckets.size > MAX_BUCKETS) {
      const [idle] = this.buckets.keys();
      this.buckets.delete(idle as bigint);
    }
  }
}
