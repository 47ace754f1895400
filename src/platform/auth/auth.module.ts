import { Global, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { ApiKeyChanges } from '../api-keys/api-key-changes.js';
import { ApiKeysModule } from '../api-keys/api-keys.module.js';
import { StartKeys } from '../api-keys/start-keys.js';
import { KeyUsageModule } from '../key-usage/key-usage.module.js';
import { RateLimitModule } from '../rate-limit/rate-limit.module.js';
import { ApiKeyGuard } from './api-key.guard.js';
import { OperationRegistry } from './operation-registry.js';

/** Authentication, rate limits and usage for every handler of every module. */
@Global()
@Module({
  imports: [DiscoveryModule, ApiKeysModule, KeyUsageModule, RateLimitModule],
  providers: [ApiKeyChanges, StartKeys, OperationRegistry, ApiKeyGuard],
  exports: [ApiKeysModule, StartKeys, OperationRegistry, ApiKeyGuard],
})
export class AuthModule {}
