import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { Response } from 'express';
import { Config } from '../../config.js';
import { Clock } from '../clock.js';
import { ApiError } from '../errors/api-error.js';
import { RATE_LIMITED } from '../errors/error-catalogue.js';
import type { Client } from '../api-keys/api-key.repository.js';
import { SharedTokenBuckets } from './shared-token-buckets.js';
import { TokenBuckets, tokensAfter, WINDOW_MS } from './token-buckets.js';

/** Result of one call: the header fields to send, and the error if the call is refused. */
export interface RateLimit {
  /** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10). */
  readonly policy: string;
  readonly state: string;
  readonly refusal: ApiError | undefined;
}

/** The state of the connection to Redis. */
export interface RedisState {
  readonly isAway: boolean;
  /** Number of calls since the start that were counted in this process because Redis did not answer. */
  readonly localDecisions: number;
}

const WINDOW_S = WINDOW_MS / 1000;

/** Largest number of clients whose refusals are counted separately: each is a time series in Prometheus. */
const MAX_COUNTED_CLIENTS = 100;

/**
 * Limits the calls of each client, counted over all of its keys, to its own limit or to RATE_LIMIT_PER_MINUTE. With
 * REDIS_URL all instances share the count. While Redis is unreachable each process counts alone.
 */
@Injectable()
export class RateLimiter implements OnModuleInit, OnApplicationShutdown {
  private readonly buckets = new TokenBuckets();
  private shared: SharedTokenBuckets | undefined;
  private localDecisions = 0;
  /** Refused calls since the start, by the client's name; those of clients beyond the first hundred together. */
  readonly refusals = new Map<string, number>();

  constructor(
    private readonly config: Config,
    private readonly clock: Clock,
  ) {}

  /** Whether the instances share their counts in Redis. */
  get isShared(): boolean {
    return this.config.redisUrl !== undefined;
  }

  get redis(): RedisState {
    return { isAway: this.shared?.isAway === true, localDecisions: this.localDecisions };
  }

  async onModuleInit(): Promise<void> {
    if (this.config.redisUrl !== undefined) {
      this.shared = await SharedTokenBuckets.open(this.config.redisUrl);
    }
  }

  onApplicationShutdown(): void {
    this.shared?.close();
  }

  /** Counts one call; undefined when the client has no limit. Returns a promise only with Redis. */
  take(client: Client, now = this.clock.now()): RateLimit | undefined | Promise<RateLimit> {
    const { id, name, rateLimitPerMinute } = client;
    const perMinute = rateLimitPerMinute ?? this.config.rateLimitPerMinute;
    if (perMinute === 0) {
      return undefined;
    }
    return this.shared
      ? this.takeShared(this.shared, client, perMinute)
      : this.describe(this.buckets.take(id, perMinute, now), perMinute, name);
  }

  private async takeShared(shared: SharedTokenBuckets, { id, name }: Client, perMinute: number): Promise<RateLimit> {
    let left = await shared.take(id, perMinute);
    if (left === undefined) {
      this.localDecisions++;
      left = this.buckets.take(id, perMinute, this.clock.now());
    }
    return this.describe(left, perMinute, name);
  }

  /** @param left the result of `TokenBuckets.take` */
  private describe(left: number, perMinute: number, client: string): RateLimit {
    const secondsPerToken = WINDOW_S / perMinute;
    const tokens = tokensAfter(left);
    const untilFull = Math.ceil((perMinute - tokens) * secondsPerToken);
    const isRefused = left < 0;
    if (isRefused) this.countRefusal(client);
    return {
      policy: `"client";q=${perMinute};w=${WINDOW_S}`,
      state: `"client";r=${Math.floor(tokens)};t=${untilFull}`,
      refusal: isRefused ? rateLimited(perMinute, Math.ceil(-left * secondsPerToken)) : undefined,
    };
  }

  private countRefusal(client: string): void {
    const isCounted = this.refusals.has(client) || this.refusals.size < MAX_COUNTED_CLIENTS;
    const name = isCounted ? client : '(others)';
    this.refusals.set(name, (this.refusals.get(name) ?? 0) + 1);
  }
}

/**
 * Adds the header fields of a client's limit to a response.
 *
 * @throws ApiError of status 429 if the call is refused
 */
export function enforceRateLimit(response: Response, { policy, state, refusal }: RateLimit): void {
  response.setHeader('RateLimit-Policy', policy);
  response.setHeader('RateLimit', state);
  if (refusal) throw refusal;
}

function rateLimited(perMinute: number, retryAfter: number): ApiError {
  const message = `This client may call ${perMinute} times a minute. Try again in ${retryAfter} s.`;
  return new ApiError(RATE_LIMITED, message, { 'Retry-After': String(retryAfter) });
}
