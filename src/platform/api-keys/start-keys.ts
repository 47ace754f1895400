import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Config } from '../../config.js';
import { ApiKeysService } from './api-keys.service.js';

/** Makes the first keys of a new installation: BOOTSTRAP_API_KEY, and with the embedded database a random one. */
@Injectable()
export class StartKeys implements OnApplicationBootstrap {
  constructor(
    private readonly config: Config,
    private readonly apiKeys: ApiKeysService,
  ) {}

  /** @throws StartupError when BOOTSTRAP_API_KEY has a wrong checksum */
  async onApplicationBootstrap(): Promise<void> {
    if (this.config.bootstrapApiKey !== undefined) {
      await this.apiKeys.ensureBootstrapKey(this.config.bootstrapApiKey);
    }
  }

  /**
   * Creates a key if the embedded database has none, and returns its secret; otherwise undefined. Call this only when
   * the secret can be displayed, because it cannot be shown again.
   */
  async createFirstKey(): Promise<string | undefined> {
    return this.config.databaseUrl === undefined ? this.apiKeys.createFirstKey() : undefined;
  }
}
