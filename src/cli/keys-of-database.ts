import type { DataSource } from 'typeorm';
import type { Config } from '../config.js';
import { ApiKeyRepository } from '../platform/api-keys/api-key.repository.js';
import { ApiKeyVerifier } from '../platform/api-keys/api-key.verifier.js';
import { ApiKeysService } from '../platform/api-keys/api-keys.service.js';
import type { Application } from '../platform/application.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { KeyUsageRepository } from '../platform/key-usage/key-usage.repository.js';

/** The API keys of an open database, and their usage, without Nest. */
export function keysOfDatabase(
  dataSource: DataSource,
  config: Config,
  application: Application,
): [ApiKeysService, KeyUsageRepository] {
  const database = new Database(dataSource, config);
  const repository = new ApiKeyRepository(database);
  const clock = new Clock();
  const apiKeys = new ApiKeysService(repository, new ApiKeyVerifier(repository, clock), clock, application);
  return [apiKeys, new KeyUsageRepository(database)];
}
