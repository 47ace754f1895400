import pg, { type ClientBase, type PoolClient, type PoolConfig } from 'pg';
import { AbandonedChanges } from './abandoned-changes.js';
import { unavailable } from './connection-errors.js';
import { awaitsAnswer, destroySocket } from '../statements/pg-internals.js';
import { tooManyWaiting } from './queue-errors.js';

/** Largest number of callers that wait for a connection of a pool. One more is refused at once. */
const MAX_WAITING = 1_000;

/** Connections are replaced at this share of their maximum age or later, so that not all are replaced at once. */
const SMALLEST_AGE = 0.8;

/** Settings of a `ServicePool`. */
export interface ServicePoolOptions extends Omit<PoolConfig, 'onConnect'> {
  /** Prepares a new connection before it is used; must end in bounded time. pg-pool waits for it. */
  readonly onConnect?: (client: ClientBase) => Promise<void>;
  /** Age in ms at which a connection is closed, after the statement in flight if there is one. Undefined: no limit. */
  readonly maxAgeMs?: number;
}

type ConnectCallback = (error: Error | undefined, client: PoolClient | undefined, release: () => void) => void;

/**
 * pg's pool, for statements of our own and of TypeORM. It differs from pg's in six ways:
 *
 * - No error of a connection ends the process. pg-pool itself listens to idle connections only.
 * - While the database is silent (sends no answer at all, see `heartbeat.ts`), all connections are closed, and every caller
 *   that waits or asks for one is refused at once.
 * - At most MAX_WAITING callers wait for a connection.
 * - Each connection is replaced at a random age, so that not all are replaced at once.
 * - A connection that is released with an unanswered statement or an open transaction is closed.
 * - A connection whose change waits for a synchronous standby keeps its place (`abandonedChanges`).
 */
export class ServicePool extends pg.Pool {
  readonly abandonedChanges = new AbandonedChanges(this);
  private readonly clients: Set<pg.Client>;
  /** For each caller that waits for a connection, the function that refuses it. */
  private readonly refusals = new Set<(error: Error) => void>();
  private silence: (() => Error) | undefined;

  constructor({ maxAgeMs, ...options }: ServicePoolOptions) {
    const clients = new Set<pg.Client>();
    const Client = (options.Client ?? pg.Client) as typeof pg.Client;
    class PooledClient extends Client {
      constructor(clientOptions?: PoolConfig) {
        super(clientOptions);
        clients.add(this);
        this.once('end', () => clients.delete(this));
        // Statements fail with the error anyway, and pg-pool replaces idle connections.
        this.on('error', () => undefined);
      }
    }
    super({ ...options, Client: PooledClient });
    this.clients = clients;
    if (maxAgeMs !== undefined) {
      // pg-pool reads it for each new connection.
      Object.defineProperty(this.options, 'maxLifetimeSeconds', {
        get: () => (maxAgeMs / 1_000) * (SMALLEST_AGE + (1 - SMALLEST_AGE) * Math.random()),
      });
    }
    this.on('release', (error: Error | undefined, client) => {
      // After an error pg-pool closes the connection itself. `end` removes the connection from the pool.
      if (error === undefined && !isReusable(client)) client.end().catch(() => undefined);
    });
  }

  /**
   * A connection of the pool.
   *
   * @throws ApiError UNAVAILABLE while the database is silent or when too many callers wait; any error of pg
   */
  override connect(): Promise<PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<PoolClient> | undefined {
    const client = this.acquire();
    if (callback === undefined) return client;
    client.then(
      (acquired) =>
        callback(undefined, acquired, () => {
          if (!this.abandonedChanges.has(acquired)) acquired.release();
        }),
      (error: Error) => callback(error, undefined, () => undefined),
    );
    return undefined;
  }

  /**
   * Closes all connections, so that statements in flight fail, and refuses all callers until `endSilence`.
   *
   * @param silence makes the error to report, which says how long the silence has lasted
   */
  beginSilence(silence: () => Error): void {
    this.silence = silence;
    const error = silence();
    this.refusals.forEach((refuse) => refuse(unavailable(error)));
    this.refusals.clear();
    this.closeAll(error);
  }

  /** Closes all connections once more, because some may have opened during the silence. Then serves callers again. */
  endSilence(): void {
    if (this.silence === undefined) return;
    this.closeAll(this.silence());
    this.silence = undefined;
  }

  private async acquire(): Promise<PoolClient> {
    if (this.silence !== undefined) throw unavailable(this.silence());
    if (this.waitingCount >= MAX_WAITING) throw tooManyWaiting();
    const acquired = super.connect();
    return new Promise((resolve, reject) => {
      this.refusals.add(reject);
      acquired.then(
        (client) => {
          if (this.refusals.delete(reject)) resolve(client);
          else client.release();
        },
        (error: Error) => {
          this.refusals.delete(reject);
          reject(error);
        },
      );
    });
  }

  private closeAll(error: Error): void {
    this.clients.forEach((client) => destroySocket(client, error));
  }
}

function isReusable(client: PoolClient): boolean {
  return !awaitsAnswer(client) && client.getTransactionStatus() === 'I';
}
