import { Inject, Injectable, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Gauge } from 'prom-client';
import type { RequestStep, StoredApiKey } from '#access';
import { ApiError, RATE_LIMITED } from '#errors';
import { Metrics, registerMetric } from '#ops';
import type { Operation } from '#operations';
import type { PostgresConfig } from '#postgres';
import { Config, integer, optional, type SettingsOf, withEscapes } from '#settings';
import { SharedTokenBuckets } from './shared-token-buckets.js';
import { TokenBuckets, tokensAfter, WINDOW_MS } from './token-buckets.js';

const WINDOW_S = WINDOW_MS / 1000;

export const RATE_LIMIT_SETTINGS = {
  rateLimitPerMinute: integer(
    'RATE_LIMIT_PER_MINUTE',
    6_000,
    // One process serves fewer than that.
    [0, 10_000_000],
    'Requests a minute of one client, with all of its keys together; 0 means no limit. A client ' +
      'may send all of them at once; it gets one sixtieth back each second.',
  ),
  redisUrl: {
    ...optional(
      'REDIS_URL',
      'a Redis URI such as redis://user:password@host:6379/0, or rediss:// with TLS',
      'Redis (5 or later) in which instances with the same host and database in DATABASE_URL share the rate limits. Not set, or ' +
        'while Redis does not respond: each instance counts by itself.',
      parseRedisUri,
    ),
    neverEmpty: true as const,
  },
};

/** Another path than the number of a database comes from a password with / that is not percent-encoded. */
function parseRedisUri(text: string): string | undefined {
  // ioredis throws at an escape that is not UTF-8.
  const uri = withEscapes(text) ?? '';
  const { hostname, pathname, hash } = URL.canParse(uri) ? new URL(uri) : { hostname: '', pathname: '', hash: '' };
  return /^rediss?:/i.test(uri) && hostname !== '' && hash === '' && /^(\/\d{0,9})?$/.test(pathname) ? uri : undefined;
}

/**
 * Limits the calls of each client, counted over all of its keys, to RATE_LIMIT_PER_MINUTE. With
 * REDIS_URL all instances share the count. While Redis is unreachable each instance counts alone.
 */
@Injectable()
export class RateLimiter implements RequestStep, OnModuleInit, OnApplicationShutdown {
  private readonly buckets = new TokenBuckets();
  private readonly policy: string;
  shared: SharedTokenBuckets | undefined;

  constructor(
    @Inject(Config)
    private readonly config: SettingsOf<typeof RATE_LIMIT_SETTINGS> & Pick<PostgresConfig, 'databaseUrl' | 'product'>,
    private readonly metrics: Metrics,
  ) {
    this.policy = `"client";q=${config.rateLimitPerMinute};w=${WINDOW_S}`;
  }

  async onModuleInit(): Promise<void> {
    const { redisUrl, databaseUrl, product } = this.config;
    if (redisUrl === undefined) return;
    // Instances of one service have one database. Its clients have their ids from it.
    const { host, pathname } = new URL(databaseUrl ?? 'embedded://');
    this.shared = await SharedTokenBuckets.open(redisUrl, `${product.name}:bucket:${host}${pathname}:`);
    registerMetric(Gauge, this.metrics, {
      name: 'redis_away',
      help: '1 while Redis does not respond, and the process limits its clients by itself; else 0.',
      read: () => Number(this.shared?.isAway ?? false),
    });
  }

  onApplicationShutdown(): void {
    this.shared?.close();
  }

  /**
   * Counts one call, and adds the header fields of the client's limit to its response. Returns a promise only with Redis.
   *
   * @throws ApiError of status 429 if the call is refused; with Redis, rejects with it
   */
  admit({ context, res }: Request, _operation: Operation, { client }: StoredApiKey): void | Promise<void> {
    const perMinute = this.config.rateLimitPerMinute;
    if (perMinute === 0) return;
    const answer = (left = this.buckets.take(client.id, perMinute, context.now)): void =>
      this.answer(res as Response, perMinute, left);
    return this.shared === undefined ? answer() : this.shared.take(client.id, perMinute).then(answer);
  }

  /** Adds the header fields of draft-ietf-httpapi-ratelimit-headers-10. */
  private answer(response: Response, perMinute: number, left: number): void {
    const secondsPerToken = WINDOW_S / perMinute;
    const tokens = tokensAfter(left);
    const untilFull = Math.ceil((perMinute - tokens) * secondsPerToken);
    response.setHeader('RateLimit-Policy', this.policy);
    response.setHeader('RateLimit', `"client";r=${Math.floor(tokens)};t=${untilFull}`);
    if (left >= 0) return;
    const retryAfter = Math.ceil(-left * secondsPerToken);
    const message = `This client may call ${perMinute} times a minute. Try again in ${retryAfter} s.`;
    throw new ApiError(RATE_LIMITED, message, { 'Retry-After': String(retryAfter) });
  }
}

@Module({ providers: [RateLimiter], exports: [RateLimiter] })
export class RateLimitModule {}
