import type { ClientBase, Pool, PoolClient } from 'pg';
import { isConnectionFailure, unavailable } from './connection-errors.js';
import { PoolConnections } from './pool-connections.js';
import { tooManyWaiting } from './queue-errors.js';
import type { Execute, Statement } from './statement.js';

/** Most statements that wait for a connection of a pool. One more is refused at once. */
const MAX_WAITING_STATEMENTS = 1_000;

/** Grace period in ms for in-flight statements once a silent database answers again. */
const LATE_ANSWER_MS = 250;

/** Interval in ms of the check for statements that run too long. */
const CHECK_INTERVAL_MS = 250;

/** A statement in flight. */
interface Execution {
  readonly reject: (error: Error) => void;
  /** In ms of `performance.now()`. */
  readonly deadline: number;
}

/** Runs statements on the connections of a pool. */
export class StatementRunner {
  private readonly executions = new Set<Execution>();
  private timer: NodeJS.Timeout | undefined;
  private readonly connections: PoolConnections;

  /**
   * @param timeoutMs longest wait for an answer in ms; then the statement fails and its connection is closed
   * @param executeOn executes a statement on a client
   * @param silence the error to report while the database is silent; undefined while it answers
   */
  constructor(
    private readonly pool: Pool,
    private readonly timeoutMs: number,
    private readonly executeOn: Execute,
    private readonly silence: () => Error | undefined = () => undefined,
  ) {
    this.connections = new PoolConnections(pool);
  }

  /** Open connections, idle ones among them, and statements that wait for one. */
  get load(): { readonly connections: number; readonly idle: number; readonly waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.pool;
    return { connections: totalCount, idle: idleCount, waiting: waitingCount };
  }

  /**
   * Runs a statement.
   *
   * @param onSend called immediately before the statement is sent
   * @throws ApiError UNAVAILABLE while the database is silent or when too many statements wait; any error of pg
   */
  async run<Row extends unknown[]>(
    statement: Statement,
    values: readonly unknown[],
    onSend?: () => void,
  ): Promise<Row[]> {
    const client = await this.connect();
    // Without a listener, an error of the connection would end the process. The statement fails anyway.
    client.on('error', ignore);
    let failure: Error | undefined;
    try {
      onSend?.();
      return await this.execute<Row>(client, statement, values);
    } catch (error) {
      if (isConnectionFailure(error)) failure = error;
      throw error;
    } finally {
      client.off('error', ignore);
      client.release(failure);
    }
  }

  /** Runs a statement on the caller's client, with the same time limit as `run`. */
  async execute<Row extends unknown[]>(
    client: ClientBase,
    statement: Statement,
    values: readonly unknown[],
  ): Promise<Row[]> {
    let execution: Execution | undefined;
    try {
      return await new Promise<Row[]>((resolve, reject) => {
        execution = { reject, deadline: performance.now() + this.timeoutMs };
        this.executions.add(execution);
        this.watch();
        this.executeOn<Row>(client, statement, values).then(resolve, reject);
      });
    } finally {
      this.executions.delete(execution as Execution);
    }
  }

  /** @throws ApiError UNAVAILABLE while the database is silent */
  assertAnswers(): void {
    const silence = this.silence();
    if (silence !== undefined) throw unavailable(silence);
  }

  /** Replaces all connections after a silence: PostgreSQL may have forgotten them. */
  replace(): void {
    void this.connections.replace(LATE_ANSWER_MS);
  }

  private async connect(): Promise<PoolClient> {
    this.assertAnswers();
    if (this.pool.waitingCount >= MAX_WAITING_STATEMENTS) {
      throw tooManyWaiting();
    }
    const client = await this.pool.connect();
    if (this.silence() !== undefined) {
      client.release();
      this.assertAnswers();
    }
    return client;
  }

  /** Checks deadlines while statements are in flight. */
  private watch(): void {
    this.timer ??= setInterval(() => {
      const now = performance.now();
      for (const { reject, deadline } of this.executions) {
        if (now > deadline) reject(new Error('Query read timeout'));
      }
      if (this.executions.size === 0) {
        clearInterval(this.timer);
        this.timer = undefined;
      }
    }, CHECK_INTERVAL_MS).unref();
  }
}

function ignore(): void {}
