import { Module } from '@nestjs/common';
import { Gauge } from 'prom-client';
import { Metrics, registerMetric } from '#observability';
import { Config } from '#settings';
import { RateLimiter } from './rate-limiter.js';

/** Rate limits of clients. */
@Module({ providers: [RateLimiter], exports: [RateLimiter] })
export class RateLimitModule {
  constructor({ registry }: Metrics, { redisUrl }: Config, rateLimiter: RateLimiter) {
    if (redisUrl === undefined) return;
    registerMetric(Gauge, registry, {
      name: 'redis_away',
      help: '1 while Redis does not respond, and the process limits its clients by itself; else 0.',
      aggregator: 'max',
      read: () => Number(rateLimiter.shared?.isAway ?? false),
    });
  }
}
