import { Global, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { ApiKeyChanges } from '../api-keys/api-key-changes.js';
import { ApiKeysModule } from '../api-keys/api-keys.module.js';
import { StartKeys } from '../api-keys/start-keys.js';
import { KeyUsageModule } from '../key-usage/key-usage.module.js';
import { RateLimitModule } from '../rate-limit/rate-limit.module.js';
import { ApiKeyGuard } from './api-key.guard.js';
import { OperationNames } from './operation-names.js';

/** Authentication, rate limits and usage for every handler of every module. */
@Global()
@Module({
  imports: [DiscoveryModule, ApiKeysModule, KeyUsageModule, RateLimitModule],
  providers: [ApiKeyChanges, StartKeys, OperationNames, ApiKeyGuard],
  exports: [ApiKeysModule, StartKeys, OperationNames, ApiKeyGuard],
})
export class AuthModule {}
