import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Config } from '../../config.js';
import { hostUris } from '../../settings/database-uris.js';
import { StartupError } from '../errors/startup-error.js';
import { APPLICATION_NAME, IDLE_TIMEOUT_MS } from './connection-settings.js';
import { directly, type PrimarySetting } from './direct-connection.js';
import { connectionAdvice, uriAdvice } from './servers/connection-advice.js';
import { checkTransactionMode, detectPooling, type Pooling } from './servers/pooling.js';
import { type ServerAddress, ServerClient, serverAddress } from './servers/server-client.js';

/**
 * Connects to the primary, and finds out whether the connection leads through a pooler. Without this check a start would
 * fail with an error of the pool, which does not name the wrong setting. Replicas are not checked, because the service must
 * start without them.
 *
 * @param setting the setting from which `config.databaseUrl` was taken
 * @throws StartupError that names the setting and what to do, and never the URI: it contains the password
 */
export async function checkConnection(config: Config, setting: PrimarySetting = 'DATABASE_URL'): Promise<Pooling> {
  const { databaseUrl, databaseDirectUrl, databaseReplicaUrls } = config;
  if (databaseUrl === undefined) return 'none';
  databaseReplicaUrls.forEach(checkReplicaUrl);
  const pooling = await checkPrimary(setting, databaseUrl, config);
  if (pooling === 'transaction' && databaseDirectUrl === undefined) {
    const problem = `${setting} leads through a pooler in transaction mode, where LISTEN and migrations do not work.`;
    throw new StartupError(
      setting === 'DATABASE_URL'
        ? `${problem} Set DATABASE_DIRECT_URL to PostgreSQL itself, too.`
        : `${problem} It must lead to PostgreSQL itself.`,
    );
  }
  if (databaseDirectUrl !== undefined) await checkConnection(directly(config), 'DATABASE_DIRECT_URL');
  return pooling;
}

function checkReplicaUrl(connectionString: string): void {
  try {
    new pg.Client({ connectionString });
  } catch (error) {
    throw new StartupError(`DATABASE_REPLICA_URLS: ${uriAdvice(error as Error)}`);
  }
}

async function checkPrimary(setting: PrimarySetting, url: string, config: Config): Promise<Pooling> {
  const { databasePasswordFile, acquireTimeoutMs, statementTimeoutMs } = config;
  const clients: ServerClient[] = [];
  let address: ServerAddress;
  const connect = async (): Promise<ServerClient> => {
    const client = new ServerClient({
      ...address,
      connectionTimeoutMillis: acquireTimeoutMs,
      query_timeout: acquireTimeoutMs,
      application_name: APPLICATION_NAME,
    });
    clients.push(client);
    // An 'error' event without a listener would end the process; `connect` rejects with the same error.
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  try {
    address = serverAddress(hostUris(url), databasePasswordFile);
    const first = await connect();
    const pooling = await detectPooling(first, connect);
    if (pooling === 'transaction') {
      await checkTransactionMode([first, clients[1] as ServerClient], {
        statement_timeout: statementTimeoutMs,
        idle_in_transaction_session_timeout: IDLE_TIMEOUT_MS,
      });
    }
    return pooling;
  } catch (error) {
    const advice = connectionAdvice(error as Error, clients[0], acquireTimeoutMs, databasePasswordFile);
    throw new StartupError(`${setting}: ${advice}`);
  } finally {
    // Waits no longer than for a connection: a full pooler may not answer.
    await Promise.race([
      Promise.all(clients.map((client) => client.end().catch(() => undefined))),
      sleep(acquireTimeoutMs, undefined, { ref: false }),
    ]);
  }
}
