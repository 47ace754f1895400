import type { ClientBase, PoolClient } from 'pg';
import { untilArrivedAnswersAreRead } from './arrived-answers.js';
import { isConnectionFailure, isStalePreparation, mayHaveStaleTypes } from './connection-errors.js';
import { tooManyWaiting } from './queue-errors.js';
import type { ServicePool } from './service-pool.js';
import type { Execute, Statement } from '../statements/statement.js';

/** Interval in ms of the check for statements that run too long. */
const CHECK_INTERVAL_MS = 250;

/** A statement in flight. */
interface Execution {
  readonly reject: (error: Error) => void;
  readonly answer: Promise<unknown>;
  /** In ms of `performance.now()`. */
  readonly deadline: number;
}

/** A statement got no answer in time. The message is that of pg's own time-out. */
class AnswerTimeout extends Error {
  /** @param answer settles with the answer, or when the connection ends */
  constructor(readonly answer: Promise<unknown>) {
    super('Query read timeout');
  }
}

/** Runs statements on the connections of a pool. */
export class StatementRunner {
  private readonly executions = new Set<Execution>();
  private timer: NodeJS.Timeout | undefined;

  /**
   * @param timeoutMs longest wait for an answer in ms; then the statement fails and its connection is closed
   * @param executeOn executes a statement on a client
   */
  constructor(
    private readonly pool: ServicePool,
    private readonly timeoutMs: number,
    private readonly executeOn: Execute,
  ) {}

  /** The numbers of open connections, of the idle ones among them, and of statements that wait for a connection. */
  get load(): { readonly connections: number; readonly idle: number; readonly waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.pool;
    return { connections: totalCount, idle: idleCount, waiting: waitingCount };
  }

  /**
   * Runs a statement.
   *
   * @param onSend marks the statement as a change; called immediately before it is sent
   * @throws ApiError UNAVAILABLE while the database is silent or when too many statements wait; any error of pg
   */
  async run<Row extends unknown[]>(
    statement: Statement,
    values: readonly unknown[],
    onSend?: () => void,
  ): Promise<Row[]> {
    const { abandonedChanges } = this.pool;
    if (onSend !== undefined && abandonedChanges.isFull) await abandonedChanges.admit();
    return this.runOn(await this.pool.connect(), statement, values, onSend);
  }

  /** Runs a statement as `run` does, on a connection that the caller has taken from the pool, and releases it. */
  async runOn<Row extends unknown[]>(
    client: PoolClient,
    statement: Statement,
    values: readonly unknown[],
    onSend?: () => void,
  ): Promise<Row[]> {
    let failure: Error | undefined;
    let isKept = false;
    try {
      if (onSend !== undefined) {
        if (this.pool.abandonedChanges.isFull) throw tooManyWaiting();
        onSend();
      }
      return await this.execute<Row>(client, statement, values);
    } catch (error) {
      if (error instanceof AnswerTimeout && onSend !== undefined) {
        isKept = this.pool.abandonedChanges.keep(client, error.answer);
      }
      if (isConnectionFailure(error)) failure = error;
      if (statement.name === '' || !(isStalePreparation(error) || mayHaveStaleTypes(error))) throw error;
      // The statement had no effect (DEALLOCATE, or a changed table). Without a name it is parsed anew. If it works now,
      // its preparation was stale. Releasing with `failure` closes the connection: other preparations may be stale, too.
      const rows = await this.execute<Row>(client, { ...statement, name: '' }, values);
      failure ??= error as Error;
      return rows;
    } finally {
      if (!isKept) client.release(failure);
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
        const answer = this.executeOn<Row>(client, statement, values);
        execution = { reject, answer, deadline: performance.now() + this.timeoutMs };
        this.executions.add(execution);
        this.watch();
        answer.then(resolve, reject);
      });
    } finally {
      this.executions.delete(execution as Execution);
    }
  }

  private async giveUp({ reject, answer }: Execution): Promise<void> {
    await untilArrivedAnswersAreRead();
    // Has no effect if the answer was among them.
    reject(new AnswerTimeout(answer));
  }

  /** Checks deadlines while statements are in flight. */
  private watch(): void {
    this.timer ??= setInterval(() => {
      const now = performance.now();
      for (const execution of this.executions) {
        if (now > execution.deadline) void this.giveUp(execution);
      }
      if (this.executions.size === 0) {
        clearInterval(this.timer);
        this.timer = undefined;
      }
    }, CHECK_INTERVAL_MS).unref();
  }
}
