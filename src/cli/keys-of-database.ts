import type { DataSource } from 'typeorm';
import { ApiKeysService, ApiKeyVerifier } from '#api-keys';
import { KeyUsage } from '#key-usage';
import { Database } from '#postgres';
import { Clock } from '#runtime';
import type { Application, Config } from '#settings';

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
