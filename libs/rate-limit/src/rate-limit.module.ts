import { Module } from '@nestjs/common';
import { RateLimiter } from './rate-limiter.js';

/** Rate limits of clients. */
@Module({ providers: [RateLimiter], exports: [RateLimiter] })
export class RateLimitModule {}
