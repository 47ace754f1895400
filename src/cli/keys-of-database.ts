import type { DataSource } from 'typeorm';
import type { Config } from '../config.js';
import { ApiKeyVerifier } from '../platform/api-keys/api-key.verifier.js';
import { ApiKeysService } from '../platform/api-keys/api-keys.service.js';
import type { Application } from '../platform/application.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { KeyUsage } from '../platform/key-usage/key-usage.js';

/** The API keys of an open database, and their usage, without Nest. */
export function keysOfDatabase(
  dataSource: DataSource,
  config: Config,
  application: Application,
): [ApiKeysService, KeyUsage] {
  const database = new Database(dataSource, config);
  const clock = new Clock();
  const apiKeys = new ApiKeysService(database, new ApiKeyVerifier(database, clock), clock, application);
  return [apiKeys, new KeyUsage(database, clock)];
}
