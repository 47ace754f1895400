import pg, { type ClientBase, type PoolClient, type PoolConfig } from 'pg';
import { ApiError, serviceUnavailable } from '#errors';
import { destroySocket, isReady, transactionStatusOf, unansweredStatement } from '../pg-connection.internals.js';
import { EXACT, EXACT_TYPES } from '../statements.js';
import { unavailable } from './connection-errors.js';

/** Interval in ms of the search for late statements and for commits that wait for a standby. */
const WATCH_MS = 250;

/** The commits of this role, of every process, that have waited for a synchronous standby for over a second. */
const STANDBY_WAITS = `${EXACT}SELECT count(*) FROM pg_stat_activity
  WHERE usename = current_user AND wait_event = 'SyncRep' AND state_change < now() - interval '1 second'`;

/** Largest number of parameters: the protocol counts them in 16 bits. */
const MAX_PARAMETERS = 65_535;

/** What a new connection has found out. */
export interface SessionFacts {
  /** Whether a pooler has given it the session of an earlier connection, though each should have its own. */
  readonly isShared: boolean;
  /** Whether the database spreads rows over machines: then a statement that it has cancelled may have been carried out. */
  readonly isDistributed: boolean;
}

export interface ServicePoolOptions extends Omit<PoolConfig, 'onConnect'> {
  /** Prepares a new connection before it is used; must end in bounded time. pg-pool waits for it. */
  readonly onConnect?: (client: ClientBase) => Promise<SessionFacts>;
  /**
   * Longest time in ms to wait for the response to a statement, and up to WATCH_MS more; then its connection is closed,
   * with all statements that wait behind it. Default: no limit. pg's own `query_timeout` would start a timer for each
   * statement.
   */
  readonly answerTimeoutMs?: number;
  /** Called before a connection is taken; throws to refuse it. */
  readonly admit?: () => void;
}

type Release = (error?: Error | boolean) => void;
type ConnectCallback = (error: Error | undefined, client: PoolClient | undefined, release: Release) => void;

/**
 * pg's pool, for statements of our own and of TypeORM. No error of a connection ends the process: pg-pool itself listens to idle ones
 * only. A connection is closed when it is released with an open transaction, when it does not end a failed one in a second, and
 * when its statement is late.
 */
export class ServicePool extends pg.Pool {
  answered = 0;
  isDistributed = false;
  private readonly clients: Set<pg.Client>;
  private readonly watch: NodeJS.Timeout | undefined;
  private silence: Error | undefined;
  /** Number of statements without a response, which may wait for a synchronous standby. */
  private unanswered = 0;
  /** The statements in flight at the last look, and when they were first seen, by `performance.now()`. */
  private seen = new Map<object, number>();
  /** For leased connections with a limit of their own, in ms. */
  private readonly answerTimeouts = new WeakMap<ClientBase, number>();
  private readonly admit: (() => void) | undefined;

  constructor(options: ServicePoolOptions) {
    const clients = new Set<pg.Client>();
    class PooledClient extends pg.Client {
      constructor(clientOptions?: PoolConfig) {
        super(clientOptions);
        clients.add(this);
        this.once('end', () => clients.delete(this));
        // Statements fail with the error anyway, and pg-pool replaces idle connections.
        this.on('error', () => undefined);
      }

      override query(query: unknown, ...others: unknown[]): never {
        const { values = others[0] } = query as { readonly values?: unknown };
        if (Array.isArray(values) && values.length > MAX_PARAMETERS)
          throw new Error(
            `The statement has ${values.length} parameters, more than the ${MAX_PARAMETERS} of PostgreSQL's protocol. ` +
              'Send fewer rows at once, or an array for each column (unnest).',
          );
        // TypeORM sends a text, without parsers of its own.
        const isExact = typeof query === 'string' && query.startsWith(EXACT);
        const sent = isExact ? { text: query, types: EXACT_TYPES } : query;
        return super.query(sent as string, ...(others as [])) as unknown as never;
      }
    }
    const onConnect = async (client: ClientBase): Promise<void> => {
      this.isDistributed = (await options.onConnect?.(client))?.isDistributed ?? false;
    };
    const own = { ...options, onConnect, Client: connectable(PooledClient) };
    super(own);
    this.clients = clients;
    const { admit, answerTimeoutMs } = options;
    this.admit = admit;
    if (answerTimeoutMs === undefined) return;
    this.watch = setInterval(() => this.look(answerTimeoutMs), WATCH_MS).unref();
  }

  get busy(): number {
    return this.totalCount - this.idleCount;
  }

  get isSilent(): boolean {
    return this.silence !== undefined;
  }

  /**
   * A connection of the pool.
   *
   * @throws ApiError UNAVAILABLE while the database is silent, and for a connection that never became one, whatever the cause; any
   *   error of `admit`
   */
  override connect(): Promise<PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<PoolClient> | undefined {
    if (callback !== undefined) {
      this.lease(callback);
      return undefined;
    }
    return new Promise((resolve, reject) =>
      this.lease((error, client) => (client === undefined ? reject(error) : resolve(client))),
    );
  }

  /** Replaces `answerTimeoutMs` for a leased connection until it is released. */
  setAnswerTimeout(client: ClientBase, timeoutMs: number): void {
    this.answerTimeouts.set(client, timeoutMs);
  }

  /**
   * Must be called immediately before a change is sent. A commit that waits for a synchronous standby ends neither at
   * `statement_timeout` nor when its connection is closed. Without a bound such commits would use up `max_connections`.
   *
   * @throws ApiError UNAVAILABLE while half as many commits as the pool has connections, and at least two, may wait so
   */
  admitChange(): void {
    if (this.unanswered >= Math.max(2, this.options.max / 2)) throw serviceUnavailable('database_busy');
  }

  /**
   * Refuses all callers with `silence`, or with undefined serves them again. Both close all connections, so that statements in
   * flight fail: some may have opened during a silence.
   */
  setSilence(silence: Error | undefined): void {
    this.clients.forEach((client) => destroySocket(client, silence ?? this.silence));
    this.silence = silence;
  }

  /** By callbacks: with a promise, pg-pool makes two of its own for each connection. */
  private lease(callback: ConnectCallback): void {
    try {
      if (this.silence !== undefined) throw unavailable(this.silence);
      this.admit?.();
    } catch (error) {
      callback(error as Error, undefined, () => undefined);
      return;
    }
    super.connect((error, client) => {
      if (client === undefined) {
        // Poolers refuse a log-in by any SQLSTATE.
        callback(error instanceof ApiError ? error : unavailable(error as Error), undefined, () => undefined);
        return;
      }
      const release = client.release.bind(client);
      client.release = (broken) => {
        this.answerTimeouts.delete(client);
        if (broken === undefined) this.answered++;
        else if (this.watch !== undefined && unansweredStatement(client) !== undefined) this.unanswered++;
        if (broken !== undefined || isReady(client)) release(broken ?? client.getTransactionStatus() !== 'I');
        // PostgreSQL sends the error before it undoes the statement, which takes Citus long when a worker hangs.
        else transactionStatusOf(client).then((status) => release(status !== 'I'), release);
      };
      callback(undefined, client, (broken) => client.release(broken));
    });
  }

  /** Closes connections whose statement is late. */
  private look(answerTimeoutMs: number): void {
    if (this.ended) clearInterval(this.watch);
    const now = performance.now();
    const seen = new Map<object, number>();
    for (const client of this.clients) {
      const statement = unansweredStatement(client);
      if (statement === undefined) continue;
      const since = this.seen.get(statement) ?? now;
      seen.set(statement, since);
      if (now - since <= (this.answerTimeouts.get(client) ?? answerTimeoutMs)) continue;
      this.unanswered++;
      destroySocket(client, new Error('Query read timeout'));
    }
    this.seen = seen;
    if (this.unanswered === 0) return;
    this.query<{ count: string }>(STANDBY_WAITS).then(
      ({ rows: [row] }) => (this.unanswered = Math.min(this.unanswered, Number(row?.count))),
      () => undefined,
    );
  }
}

/**
 * Clients whose `connect` fails where their constructor would, because a certificate cannot be read: pg-pool calls the
 * constructor from callbacks, where its error would end the process.
 */
function connectable(Client: typeof pg.Client): typeof pg.Client {
  return function (options?: PoolConfig) {
    try {
      return new Client(options);
    } catch (error) {
      const connect = (callback: (fault: Error) => void): void =>
        queueMicrotask(() => callback(unavailable(error as Error)));
      return Object.assign(new Client({ ...options, connectionString: undefined }), { connect });
    }
  } as unknown as typeof pg.Client;
}
