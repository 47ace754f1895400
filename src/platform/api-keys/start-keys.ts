import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Config } from '../../config.js';
import { ApiKeysService } from './api-keys.service.js';

/** The keys a service needs so that somebody can call it at all. */
@Injectable()
export class StartKeys implements OnApplicationBootstrap {
  constructor(
    private readonly config: Config,
    private readonly apiKeys: ApiKeysService,
  ) {}

  /** @throws StartupError when BOOTSTRAP_API_KEY cannot be a key */
  async onApplicationBootstrap(): Promise<void> {
    if (this.config.bootstrapApiKey !== undefined) {
      await this.apiKeys.ensureBootstrapKey(this.config.bootstrapApiKey);
    }
  }

  /**
   * The secret of a key made just now, when the embedded database has none yet. Ask only when it can be shown: this is
   * the one time.
   */
  async createFirstKey(): Promise<string | undefined> {
    return this.config.databaseUrl === undefined ? this.apiKeys.createFirstKey() : undefined;
  }
}
