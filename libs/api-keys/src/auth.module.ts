import { Global, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { Config } from '#settings';
import { ApiKeyChanges } from './api-key-changes.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import { ApiKeysService } from './api-keys.service.js';
import { Authenticators } from './authenticator.js';
import { EventStreams } from './event-streams.js';
import { OperationRegistry } from './operation-registry.js';

/** API keys, and the operations that they open. */
@Global()
@Module({
  imports: [DiscoveryModule],
  providers: [ApiKeyVerifier, ApiKeysService, ApiKeyChanges, OperationRegistry, EventStreams, Authenticators],
  exports: [ApiKeyVerifier, ApiKeysService, OperationRegistry, EventStreams, Authenticators],
})
export class AuthModule implements OnApplicationBootstrap {
  constructor(
    private readonly config: Config,
    private readonly apiKeys: ApiKeysService,
  ) {}

  /** @throws StartupError when BOOTSTRAP_API_KEY has a wrong checksum */
  async onApplicationBootstrap(): Promise<void> {
    const { bootstrapApiKey } = this.config;
    if (bootstrapApiKey !== undefined) await this.apiKeys.ensureBootstrapKey(bootstrapApiKey);
  }
}
