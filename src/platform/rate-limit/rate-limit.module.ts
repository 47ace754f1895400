import { Module } from '@nestjs/common';
import { RateLimiter } from './rate-limiter.js';

/** Rate limits of clients, alone or shared through Redis. */
@Module({ providers: [RateLimiter], exports: [RateLimiter] })
export class RateLimitModule {}
