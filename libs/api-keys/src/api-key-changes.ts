import { Inject, Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { directly, hangUp, type PostgresConfig } from '#postgres';
import { Config } from '#settings';
import { ApiKeyVerifier, KEY_TIME_TO_LIVE_MS } from './api-key.verifier.js';

/** A trigger of the schema notifies this channel of each changed key. */
const CHANNEL = 'api_key_change';

/** Interval in ms of the connection's heartbeat, and longest time that one may take. */
const HEARTBEAT_MS = 5_000;

/** Time in ms between the loss of a connection, or a failed attempt, and the next attempt. */
const RETRY_MS = 500;

/**
 * Listens for every change of keys in the database, by LISTEN on a separate connection.
 *
 * A notification is missed while the connection is down, or behind a pooler that does not forward notifications. Then
 * the change takes effect when the connection is back, or after KEY_TIME_TO_LIVE_MS at most. With the embedded engine
 * there is nothing to listen for: one process makes all changes.
 */
@Injectable()
export class ApiKeyChanges implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger(ApiKeyChanges.name);
  private readonly stop = new AbortController();
  private connection: pg.Client | undefined;
  private listening: Promise<void> | undefined;
  private isAway = false;

  constructor(
    @Inject(Config) private readonly config: PostgresConfig,
    private readonly verifier: ApiKeyVerifier,
  ) {}

  /** The start does not wait: what changes before the first LISTEN is noticed by it. */
  onApplicationBootstrap(): void {
    const { databaseUrl } = directly(this.config);
    if (databaseUrl !== undefined) this.listening = this.listen(databaseUrl);
  }

  async onApplicationShutdown(): Promise<void> {
    this.stop.abort();
    hangUp(this.connection);
    await this.listening;
  }

  /** Listens until shutdown, and reconnects when a connection breaks. */
  private async listen(databaseUrl: string): Promise<void> {
    const { signal } = this.stop;
    while (!signal.aborted) {
      const reason = await this.listenOnce(databaseUrl).catch((error: unknown) => (error as Error).message);
      hangUp(this.connection);
      if (!this.isAway && !signal.aborted) {
        const seconds = KEY_TIME_TO_LIVE_MS / 1000;
        this.log.warn(`Changes of API keys take up to ${seconds} s here while the database is unreachable: ${reason}`);
      }
      this.isAway = true;
      await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  private async listenOnce(databaseUrl: string): Promise<never> {
    const connection = new pg.Client({
      connectionString: databaseUrl,
      connectionTimeoutMillis: this.config.acquireTimeoutMs,
      query_timeout: HEARTBEAT_MS,
      keepAlive: true,
      application_name: `${this.config.product.name} key changes`,
    });
    this.connection = connection;
    const broken = new AbortController();
    connection.on('error', (error) => broken.abort(error)).on('end', () => broken.abort(new Error('it hung up')));
    connection.on('notification', () => this.verifier.forget());
    // pg never settles `connect` of a client that is ended meanwhile.
    const ended = once(broken.signal, 'abort').then(() => Promise.reject(broken.signal.reason as Error));
    await Promise.race([connection.connect(), ended]);
    // The connection is idle between two heartbeats.
    await connection.query(`SET idle_session_timeout = 0; LISTEN ${CHANNEL}`);
    // Changes made before LISTEN were not notified.
    this.verifier.forget();
    this.isAway = false;
    while (!broken.signal.aborted) {
      await connection.query('SELECT');
      await sleep(HEARTBEAT_MS, undefined, { signal: broken.signal }).catch(() => undefined);
    }
    throw broken.signal.reason;
  }
}
