import { Global, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ApiKeyChanges } from './api-key-changes.js';
import { ApiKeyGuard } from './api-key.guard.js';
import { KeysModule } from './keys.module.js';
import { RateLimiter } from './rate-limiter.js';
import { StartKeys } from './start-keys.js';
import { UsageModule } from './usage.module.js';

/** Authentication, rate limits and usage for every handler of every module. */
@Global()
@Module({
  imports: [KeysModule, UsageModule],
  providers: [ApiKeyChanges, RateLimiter, StartKeys, { provide: APP_GUARD, useClass: ApiKeyGuard }],
  exports: [KeysModule, StartKeys],
})
export class AuthModule {}
