import pg, { type PoolClient } from 'pg';
import {
  DataSource,
  type DataSourceOptions,
  type EntityTarget,
  type ObjectLiteral,
  type QueryRunner,
  type ReplicationMode,
} from 'typeorm';
import type { Config } from '../../config.js';
import { StartupError } from '../errors/startup-error.js';
import { asUnavailable } from './connections/connection-errors.js';
import { EmbeddedEngine } from './embedded/embedded-engine.js';
import { loadMigrations } from './migrations.js';
import { destroySocket } from './connections/pg-internals.js';
import { assertSchemaIsCurrent, migrate, TAKES_ANY_TIME } from './schema.js';

/** The options of the one data source; `config` travels along for `openDataSource`. */
export type DatabaseOptions = Extract<DataSourceOptions, { type: 'postgres' }> & { readonly config: Config };

/** Time in ms after which an unused connection is closed, and after which PostgreSQL ends a forgotten transaction. */
const IDLE_TIMEOUT_MS = 60_000;

/** Time in ms beyond PostgreSQL's own time-out after which an answer is not waited for: its machine may be gone. */
export const ANSWER_GRACE_MS = 1_000;

/** The one definition of the data source, for application, command line and tests. */
export async function dataSourceOptions(config: Config): Promise<DatabaseOptions> {
  const common = {
    type: 'postgres' as const,
    config,
    migrations: await loadMigrations(),
    migrationsTableName: 'schema_migration',
    synchronize: false,
    installExtensions: false,
    // A connection that breaks while nobody uses it is replaced when somebody does.
    poolErrorHandler: () => undefined,
  };
  if (config.databaseUrl === undefined) {
    return { ...common, extra: { ...EMBEDDED_POOL, connectionTimeoutMillis: config.acquireTimeoutMs } };
  }
  if (config.databaseReplicaUrls.length === 0) {
    return { ...common, extra: serverPool(config), url: config.databaseUrl };
  }
  const replication = {
    master: { url: config.databaseUrl },
    slaves: config.databaseReplicaUrls.map((url) => ({ url })),
  };
  return { ...common, extra: serverPool(config), replication };
}

/**
 * An open data source together with the embedded engine below it, if there is one: `destroy` closes both. What says that
 * the database is away is an ApiError UNAVAILABLE for everybody who asks it through TypeORM, and an answer that does not
 * come in time breaks the connection.
 */
class OwningDataSource extends DataSource {
  constructor(
    options: DataSourceOptions,
    private readonly engine: EmbeddedEngine | undefined,
    private readonly answerTimeoutMs: number,
  ) {
    super(options);
  }

  override createQueryRunner(mode?: ReplicationMode): QueryRunner {
    const queryRunner = super.createQueryRunner(mode);
    const query = queryRunner.query.bind(queryRunner) as (text: string, ...others: unknown[]) => Promise<never>;
    const release = queryRunner.release.bind(queryRunner);
    let isGivenBack = false;
    queryRunner.release = () => {
      isGivenBack = true;
      return release();
    };
    queryRunner.query = async (text: string, ...others: unknown[]) => {
      let isSent = false;
      let timer: NodeJS.Timeout | undefined;
      try {
        if (queryRunner.isReleased && !isGivenBack) throw new Error('Connection terminated between two statements');
        const client = (await queryRunner.connect()) as PoolClient;
        // The embedded engine cannot go without this process.
        if (this.engine === undefined && queryRunner.data[TAKES_ANY_TIME] !== true) {
          timer = setTimeout(() => destroySocket(client), this.answerTimeoutMs);
        }
        isSent = true;
        return await query(text, ...others);
      } catch (error) {
        const isChange = text === 'COMMIT' || !(queryRunner.isTransactionActive || /^\s*SELECT\b/i.test(text));
        throw asUnavailable(error, isSent && isChange);
      } finally {
        clearTimeout(timer);
      }
    };
    return queryRunner;
  }

  override async destroy(): Promise<void> {
    try {
      await super.destroy();
    } finally {
      await this.engine?.close();
    }
  }
}

/**
 * Opens a data source: the embedded engine if it needs one, and the connections. `destroy` closes all of it.
 *
 * @throws StartupError when the database cannot be reached or opened
 */
export async function openDataSource(options: DatabaseOptions): Promise<DataSource> {
  const { config } = options;
  await checkConnections(config);
  const answerTimeoutMs = config.statementTimeoutMs + ANSWER_GRACE_MS;
  const engine = config.databaseUrl === undefined ? await EmbeddedEngine.open(config.dataDir) : undefined;
  const extra = { ...(options.extra as pg.PoolConfig), ...(engine && { stream: engine.createStream }) };
  try {
    return await new OwningDataSource({ ...options, extra }, engine, answerTimeoutMs).initialize();
  } catch (error) {
    await engine?.close();
    throw error;
  }
}

/**
 * Opens the database for the command line, whatever its schema is. `destroy` closes it.
 *
 * @throws StartupError when the database cannot be reached or opened
 */
export async function openDatabase(config: Config, entities: EntityTarget<ObjectLiteral>[] = []): Promise<DataSource> {
  return openDataSource({ ...(await dataSourceOptions(config)), entities: entities as DatabaseOptions['entities'] });
}

/**
 * Opens the database with the schema that this code needs: migrates it, or refuses to, as the settings say.
 *
 * @throws StartupError when the database cannot be reached or opened, or its schema is another
 */
export async function openCurrentDatabase(options: DatabaseOptions): Promise<DataSource> {
  const dataSource = await openDataSource(options);
  try {
    if (options.config.migrateOnStart) {
      await migrate(dataSource);
    }
    await assertSchemaIsCurrent(dataSource);
    return dataSource;
  } catch (error) {
    await dataSource.destroy();
    throw error;
  }
}

const EMBEDDED_POOL = {
  max: 1,
  idleTimeoutMillis: 0,
  user: 'postgres',
  database: 'postgres',
  host: 'embedded',
  ssl: false,
};

function serverPool(config: Config): pg.PoolConfig {
  return {
    max: config.databasePoolSize,
    connectionTimeoutMillis: config.acquireTimeoutMs,
    statement_timeout: config.statementTimeoutMs,
    idle_in_transaction_session_timeout: IDLE_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'petstore',
  };
}

/** Connects to each server once, so that the setting which is wrong can be named. */
async function checkConnections(config: Config): Promise<void> {
  const urls = [
    ...(config.databaseUrl === undefined ? [] : [['DATABASE_URL', config.databaseUrl] as const]),
    ...config.databaseReplicaUrls.map((url) => ['DATABASE_REPLICA_URLS', url] as const),
  ];
  await Promise.all(urls.map(([setting, url]) => checkConnection(setting, url, config.acquireTimeoutMs)));
}

async function checkConnection(setting: string, url: string, timeoutMs: number): Promise<void> {
  let client: pg.Client | undefined;
  try {
    client = new pg.Client({ connectionString: url, connectionTimeoutMillis: timeoutMs, application_name: 'petstore' });
    client.on('error', () => undefined);
    await client.connect();
  } catch (error) {
    throw new StartupError(`${setting}: ${explain(error as Error & { code?: string }, client, timeoutMs)}`);
  } finally {
    await client?.end().catch(() => undefined);
  }
}

function explain(error: Error & { code?: string }, client: pg.Client | undefined, timeoutMs: number): string {
  // The cause would show the URI, and the URI the password.
  if (client === undefined) return 'this is no PostgreSQL URI that can be used. Correct it.';
  const { user, database, port } = client;
  const host = client.host.startsWith('/') ? `socket ${client.host}` : `${client.host}:${port}`;
  const logIn = `PostgreSQL at ${host} refuses user '${user}'. Correct user and password, or allow them in pg_hba.conf.`;
  const known: Record<string, string> = {
    ECONNREFUSED: `nothing answers at ${host}. Start PostgreSQL there, or correct host and port.`,
    ENOENT: `nothing answers at ${host}. Start PostgreSQL there, or correct host and port.`,
    ENOTFOUND: `the host '${client.host}' is not known. Correct it.`,
    EAI_AGAIN: `the host '${client.host}' cannot be resolved at the moment. Correct it, or try again.`,
    '28P01': logIn,
    '28000': logIn,
    '3D000': `PostgreSQL at ${host} has no database '${database}'. Create it (createdb ${database}), or correct the name.`,
  };
  const answer = known[error.code ?? ''];
  if (answer !== undefined) return answer;
  if (/time-?out/i.test(error.message)) {
    return `PostgreSQL at ${host} does not answer within ${timeoutMs} ms. Correct host and port, or let it through.`;
  }
  const reason = (error.message || error.code || 'no reason given').split('\n')[0];
  return `PostgreSQL at ${host} cannot be used: ${reason}. Mend that, or set another database.`;
}
