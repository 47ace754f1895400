import { Global, Inject, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { DiscoveryModule, HttpAdapterHost } from '@nestjs/core';
import { PlatformExpressAdapter } from '#edge';
import { Config, optional, type SettingsOf } from '#settings';
import { ApiKeyVerifier, bearerTokenOf } from './api-key.verifier.js';
import { ApiKeysService } from './api-keys.service.js';
import { Authenticators } from './authenticator.js';
import { EventStreams } from './event-streams.js';

export const API_KEY_SETTINGS = {
  bootstrapApiKey: optional(
    'BOOTSTRAP_API_KEY',
    '20 to 255 characters of A-Z a-z 0-9 - . _ ~ + / (and = at the end)',
    'An API key that the start creates if it does not exist.',
    // b64token of RFC 6750, section 2.1.
    (text) => (/^(?=.{20,255}$)[A-Za-z0-9\-._~+/]+=*$/.test(text) ? text : undefined),
  ),
};

/** API keys, and other ways to say who calls. */
@Global()
@Module({
  imports: [DiscoveryModule],
  providers: [ApiKeyVerifier, ApiKeysService, EventStreams, Authenticators],
  exports: [ApiKeyVerifier, ApiKeysService, EventStreams, Authenticators],
})
export class AuthModule implements OnApplicationBootstrap {
  constructor(
    @Inject(Config) private readonly config: SettingsOf<typeof API_KEY_SETTINGS>,
    private readonly apiKeys: ApiKeysService,
    private readonly verifier: ApiKeyVerifier,
    private readonly adapterHost: HttpAdapterHost,
  ) {}

  /** @throws StartupError when BOOTSTRAP_API_KEY has a wrong checksum */
  async onApplicationBootstrap(): Promise<void> {
    const { bootstrapApiKey } = this.config;
    const { httpAdapter } = this.adapterHost;
    // Commands have no HTTP server.
    if (httpAdapter instanceof PlatformExpressAdapter) {
      httpAdapter.knownClient = (request) => this.verifier.knownClient(bearerTokenOf(request));
    }
    if (bootstrapApiKey !== undefined) await this.apiKeys.ensureBootstrapKey(bootstrapApiKey);
  }
}
