import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import pg from 'pg';
import type { Config } from '../../config.js';
import { StartupError } from '../errors/startup-error.js';
import {
  APPLICATION_NAME,
  createServerClient,
  directly,
  type PrimarySetting,
  sessionLimits,
} from './connection-settings.js';
import { connectionAdvice, uriAdvice } from './servers/connection-advice.js';
import { checkLimitsOfRole } from './servers/session-limits.js';
import { processIdOf } from '../internals/pg.js';

/** Matches a URI with several hosts, as libpq accepts them. */
const SEVERAL_HOSTS = /^[^/]*\/\/(?:[^/?#]*@)?[^/?#]*,|[?&](?:host|port)=[^&]*(?:,|%2C)/i;

/** Matches a URI that asks libpq to choose the primary. */
const CHOOSES_HOST = /[?&]target_session_attrs=/;

/**
 * Connects to the primary. Without this check a start would fail with an error of the pool, which does not name the wrong
 * setting. Replicas are not connected to, because the service must start without them.
 *
 * @param setting the setting from which `config.databaseUrl` was taken
 * @throws StartupError that names the setting and what to do, and never the URI: it contains the password
 */
export async function checkConnection(config: Config, setting: PrimarySetting = 'DATABASE_URL'): Promise<void> {
  const { databaseUrl, databaseDirectUrl, databaseReplicaUrls } = config;
  if (databaseUrl === undefined) return;
  for (const uri of databaseReplicaUrls) checkUri('DATABASE_REPLICA_URLS', uri);
  checkUri(setting, databaseUrl);
  await checkPrimary(setting, databaseUrl, config);
  if (databaseDirectUrl !== undefined) await checkConnection(directly(config), 'DATABASE_DIRECT_URL');
}

function checkUri(setting: PrimarySetting | 'DATABASE_REPLICA_URLS', connectionString: string): void {
  if (SEVERAL_HOSTS.test(connectionString) || CHOOSES_HOST.test(connectionString)) {
    throw new StartupError(
      `${setting}: a URI has one host, and no target_session_attrs. Let the host lead to the ` +
        `${setting === 'DATABASE_REPLICA_URLS' ? 'replica' : 'primary'}, by DNS or by HAProxy as in ops/patroni.`,
    );
  }
  try {
    new pg.Client({ connectionString });
  } catch (error) {
    // Files of the primary are read when its client connects.
    if (setting === 'DATABASE_REPLICA_URLS') throw new StartupError(`${setting}: ${uriAdvice(error as Error)}`);
  }
}

async function checkPrimary(setting: PrimarySetting, url: string, config: Config): Promise<void> {
  const { acquireTimeoutMs, databaseDirectUrl } = config;
  let client: pg.Client | undefined;
  try {
    client = createServerClient(config, url, {
      connectionTimeoutMillis: acquireTimeoutMs,
      query_timeout: acquireTimeoutMs,
      application_name: APPLICATION_NAME,
    });
    // An 'error' event without a listener would end the process; `connect` rejects with the same error.
    client.on('error', () => undefined);
    await client.connect();
    if (databaseDirectUrl === undefined) await warnOfPooler(setting, client);
    else await checkLimitsOfRole(client, sessionLimits(config));
  } catch (error) {
    throw new StartupError(`${setting}: ${connectionAdvice(error as Error, client)}`);
  } finally {
    // Waits no longer than for a connection: a full pooler may not answer.
    const ended = client?.end().catch(() => undefined);
    await Promise.race([ended, sleep(acquireTimeoutMs, undefined, { ref: false })]);
  }
}

/** On connecting, PostgreSQL sends the id of the process that serves the client; a pooler sends another id. */
async function warnOfPooler(setting: PrimarySetting, client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  if (rows[0]?.pid === processIdOf(client)) return;
  new Logger('Database').warn(
    setting === 'DATABASE_URL'
      ? 'DATABASE_URL leads through a pooler. In transaction mode, DATABASE_DIRECT_URL must lead to PostgreSQL itself.'
      : 'DATABASE_DIRECT_URL leads through a pooler. It must not be in transaction mode.',
  );
}
