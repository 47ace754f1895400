import { Module } from '@nestjs/common';
import { RateLimiter } from './rate-limiter.js';

/** Rate limits per client, in memory or shared through Redis. */
@Module({ providers: [RateLimiter], exports: [RateLimiter] })
export class RateLimitModule {}
