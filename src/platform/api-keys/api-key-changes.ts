import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { Config } from '../../config.js';
import { createServerClient } from '../database/connection-settings.js';
import { hangUp } from '../database/connections/hang-up.js';
import { ApiKeyVerifier, KEY_TIME_TO_LIVE_MS } from './api-key.verifier.js';

/** Triggers of the schema notify this channel of each changed row of a key or a client, with table and id. */
const CHANNEL = 'api_key_change';
const PAYLOAD = /^(api_key|client) (\d{1,19})$/;

/** Interval in ms of the connection's heartbeat, and longest time that one may take. */
const HEARTBEAT_MS = 5_000;

/** Time in ms before the first reconnection attempt. The delay doubles with each further attempt, up to the longest. */
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;

/**
 * Listens for every change of keys and clients in the database, by LISTEN on a separate connection.
 *
 * A notification is missed while the connection is down, or behind a pooler that does not forward notifications. Then
 * the change takes effect after KEY_TIME_TO_LIVE_MS at most. With the embedded engine there is nothing to listen for:
 * one process makes all changes.
 */
@Injectable()
export class ApiKeyChanges implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger(ApiKeyChanges.name);
  private readonly stop = new AbortController();
  private connection: pg.Client | undefined;
  private listening: Promise<void> | undefined;
  /** Ids of keys and clients whose notifications have arrived in this turn of the event loop. */
  private changed = { keys: new Set<bigint>(), clients: new Set<bigint>() };

  constructor(
    private readonly config: Config,
    private readonly verifier: ApiKeyVerifier,
  ) {}

  /** Resolves once the first attempt to listen has succeeded or failed. Further attempts follow in the background. */
  async onApplicationBootstrap(): Promise<void> {
    const { databaseUrl, databaseDirectUrl } = this.config;
    const listenUrl = databaseDirectUrl ?? databaseUrl;
    if (listenUrl !== undefined) {
      await new Promise<void>((settled) => {
        this.listening = this.listen(listenUrl, settled);
      });
    }
  }

  async onApplicationShutdown(): Promise<void> {
    this.stop.abort();
    hangUp(this.connection);
    await this.listening;
  }

  /** Listens until shutdown, and reconnects when a connection breaks. */
  private async listen(databaseUrl: string, settled: () => void): Promise<void> {
    let retryMs = FIRST_RETRY_MS;
    while (!this.stop.signal.aborted) {
      try {
        await this.listenOnce(databaseUrl, () => {
          retryMs = FIRST_RETRY_MS;
          settled();
        });
      } catch (error) {
        if (this.stop.signal.aborted) return;
        if (retryMs === FIRST_RETRY_MS) {
          const reason = (error as Error).message;
          const seconds = KEY_TIME_TO_LIVE_MS / 1000;
          this.log.warn(`Changes of API keys take up to ${seconds} s here while the database is away: ${reason}`);
        }
        settled();
      } finally {
        hangUp(this.connection);
      }
      await sleep(retryMs, undefined, { signal: this.stop.signal }).catch(() => undefined);
      retryMs = Math.min(2 * retryMs, LONGEST_RETRY_MS);
    }
  }

  /** Listens on one connection. Rejects when it breaks. */
  private async listenOnce(databaseUrl: string, onListening: () => void): Promise<void> {
    const connection = createServerClient(this.config, databaseUrl, {
      connectionTimeoutMillis: this.config.acquireTimeoutMs,
      query_timeout: HEARTBEAT_MS,
      keepAlive: true,
      application_name: 'petstore key changes',
    });
    this.connection = connection;
    const broken = new AbortController();
    connection.on('error', (error) => broken.abort(error)).on('end', () => broken.abort(new Error('it hung up')));
    connection.on('notification', ({ payload }) => this.note(payload));
    await connection.connect();
    await connection.query(`LISTEN ${CHANNEL}`);
    // Changes made before LISTEN were not notified.
    this.verifier.forgetAll();
    onListening();
    while (!broken.signal.aborted) {
      await connection.query('SELECT');
      await sleep(HEARTBEAT_MS, undefined, { signal: broken.signal }).catch(() => undefined);
    }
    throw broken.signal.reason;
  }

  /** A change of many keys arrives as many notifications at once; the verifier's cache is searched once for all of them. */
  private note(payload = ''): void {
    const [, table, id] = PAYLOAD.exec(payload) ?? [];
    if (id === undefined) {
      this.verifier.forgetAll();
      return;
    }
    const { keys, clients } = this.changed;
    if (keys.size + clients.size === 0) {
      setImmediate(() => {
        this.changed = { keys: new Set(), clients: new Set() };
        this.verifier.forget({ keys, clients });
      });
    }
    (table === 'client' ? clients : keys).add(BigInt(id));
  }
}
