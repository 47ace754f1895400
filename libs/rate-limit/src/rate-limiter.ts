import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { Response } from 'express';
import type { Client } from '#api-keys';
import { ApiError, RATE_LIMITED } from '#errors';
import { Clock } from '#runtime';
import { Config } from '#settings';
import { SharedTokenBuckets } from './shared-token-buckets.js';
import { TokenBuckets, tokensAfter, WINDOW_MS } from './token-buckets.js';

const WINDOW_S = WINDOW_MS / 1000;

/**
 * Limits the calls of each client, counted over all of its keys, to RATE_LIMIT_PER_MINUTE. With
 * REDIS_URL all instances share the count. While Redis is unreachable each process counts alone.
 */
@Injectable()
export class RateLimiter implements OnModuleInit, OnApplicationShutdown {
  private readonly buckets = new TokenBuckets();
  /** The buckets in Redis; undefined without REDIS_URL. */
  shared: SharedTokenBuckets | undefined;

  constructor(
    private readonly config: Config,
    private readonly clock: Clock,
  ) {}

  async onModuleInit(): Promise<void> {
    const { redisUrl, databaseUrl } = this.config;
    if (redisUrl === undefined) return;
    // Instances of one service have one database. Its clients have their ids from it.
    const { host, pathname } = new URL(databaseUrl ?? 'embedded://');
    this.shared = await SharedTokenBuckets.open(redisUrl, host + pathname);
  }

  onApplicationShutdown(): void {
    this.shared?.close();
  }

  /**
   * Counts one call, and adds the header fields of the client's limit to its response. Returns a promise only with Redis.
   *
   * @throws ApiError of status 429 if the call is refused; with Redis, rejects with it
   */
  admit(client: Client, response: Response, now = this.clock.now()): Promise<undefined> | undefined {
    const perMinute = this.config.rateLimitPerMinute;
    if (perMinute === 0) return undefined;
    const answer = (left = this.buckets.take(client.id, perMinute, now)): undefined =>
      this.answer(response, perMinute, left);
    return this.shared === undefined ? answer() : this.shared.take(client.id, perMinute).then(answer);
  }

  /**
   * Adds the header fields of draft-ietf-httpapi-ratelimit-headers-10.
   *
   * @param left the result of `TokenBuckets.take`
   */
  private answer(response: Response, perMinute: number, left: number): undefined {
    const secondsPerToken = WINDOW_S / perMinute;
    const tokens = tokensAfter(left);
    const untilFull = Math.ceil((perMinute - tokens) * secondsPerToken);
    response.setHeader('RateLimit-Policy', `"client";q=${perMinute};w=${WINDOW_S}`);
    response.setHeader('RateLimit', `"client";r=${Math.floor(tokens)};t=${untilFull}`);
    if (left >= 0) return;
    const retryAfter = Math.ceil(-left * secondsPerToken);
    const message = `This client may call ${perMinute} times a minute. Try again in ${retryAfter} s.`;
    throw new ApiError(RATE_LIMITED, message, { 'Retry-After': String(retryAfter) });
  }
}
