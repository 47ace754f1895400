import { Logger } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { WINDOW_MS } from './token-buckets.js';

/** Longest time in ms that a request waits for Redis, and time in ms without requests to Redis after a failure. */
const ANSWER_TIMEOUT_MS = 50;
const PAUSE_MS = 1_000;

const CONNECT_TIMEOUT_MS = 1_000;
const DISCONNECT_TIMEOUT_MS = 100;
const LONGEST_RETRY_MS = 2_000;

/** The calculation of `TokenBuckets`, as an atomic script. All instances use the clock of Redis. */
const TAKE = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local perMinute = tonumber(ARGV[1])
  local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
  local refill = math.max(0, now - (tonumber(bucket[2]) or now)) * (perMinute / ${WINDOW_MS})
  local left = math.min(perMinute, (tonumber(bucket[1]) or perMinute) + refill) - 1
  redis.call('HSET', KEYS[1], 'tokens', left < 0 and left + 1 or left, 'at', string.format('%.0f', now))
  redis.call('PEXPIRE', KEYS[1], ${WINDOW_MS})
  return tostring(left)
`;

/** ioredis's error for a command without a connection. The event with the cause follows. */
const NO_CONNECTION = /^Stream isn't writeable/;

/** ioredis's error of a command without a reply after ANSWER_TIMEOUT_MS. */
const LATE = 'Command timed out';

type RedisWithTake = Redis & { takeToken(key: string, perMinute: number): Promise<string> };

/** One token bucket per client in Redis (version 5 or later), shared by all instances. */
export class SharedTokenBuckets {
  private readonly log = new Logger(SharedTokenBuckets.name);
  private pausedUntil = 0;
  isAway = false;
  /** Whether the log has the cause. */
  private isTold = false;

  private constructor(private readonly redis: RedisWithTake) {}

  /**
   * Connects in the background, so Redis may be unreachable at start.
   *
   * @param keyPrefix the start of the keys in Redis; each service on the same Redis has its own
   */
  static async open(url: string, keyPrefix: string): Promise<SharedTokenBuckets> {
    const { Redis } = await import('ioredis');
    const redis = new Redis(url, {
      keyPrefix,
      connectTimeout: CONNECT_TIMEOUT_MS,
      disconnectTimeout: DISCONNECT_TIMEOUT_MS,
      commandTimeout: ANSWER_TIMEOUT_MS,
      // Commands do not wait for a connection: without one, the process counts in its own memory.
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      enableAutoPipelining: true,
      retryStrategy: (attempt) => Math.min(attempt * 100, LONGEST_RETRY_MS),
      scripts: { takeToken: { lua: TAKE, numberOfKeys: 1 } },
    }) as RedisWithTake;
    const buckets = new SharedTokenBuckets(redis);
    redis.on('error', (error: Error) => buckets.pause(error));
    redis.on('close', () => buckets.isAway && buckets.pause(new Error('It closed the connection.')));
    return buckets;
  }

  /** Like `TokenBuckets.take`; undefined if Redis is unreachable, late, or returns nothing sensible. */
  async take(client: bigint, perMinute: number): Promise<number | undefined> {
    if (performance.now() < this.pausedUntil) return undefined;
    try {
      const answer: unknown = await this.redis.takeToken(String(client), perMinute);
      const left = typeof answer === 'string' ? Number(answer) : NaN;
      if (!(left >= -1 && left < perMinute)) throw new Error(`It returned ${String(answer)}.`);
      if (this.isAway) {
        this.isAway = false;
        if (this.isTold) this.log.log('Redis is back: the instances share their rate limits again.');
        this.isTold = false;
      }
      return left;
    } catch (error) {
      this.pause(error as Error);
      return undefined;
    }
  }

  close(): void {
    this.isTold = true;
    this.redis.disconnect();
  }

  private pause(reason: Error): void {
    this.pausedUntil = performance.now() + PAUSE_MS;
    this.isAway = true;
    if (this.isTold || NO_CONNECTION.test(reason.message)) return;
    this.isTold = true;
    const state = reason.message === LATE ? 'slow' : 'unreachable';
    this.log.warn(
      `Redis is ${state}: each instance limits its clients by itself. ${reason.message.trim()} If it is up, correct REDIS_URL.`,
    );
  }
}
