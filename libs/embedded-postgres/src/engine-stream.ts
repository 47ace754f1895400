import type { PGlite } from '@electric-sql/pglite';
import { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** The type of the message Terminate, which would end the engine. `pg` writes each message, or several, in one chunk. */
const TERMINATE = 'X'.charCodeAt(0);

/** The end of a response outside of a transaction: ReadyForQuery with the status idle. */
const IDLE = Buffer.from('Z\0\0\0\x05I', 'latin1');

/**
 * Updates the statistics of each table that has ten times as many pages as they say, and makes the session plan its prepared
 * statements anew: the engine has no autovacuum, and its session never ends. A failure leaves the table as it is.
 */
const FOLLOW_GROWTH = simpleQuery(`DO $$
  DECLARE
    grown text;
  BEGIN
    FOR grown IN
      SELECT oid::regclass FROM pg_class
      WHERE oid >= 16384 AND relkind IN ('r', 'm') AND pg_relation_size(oid) >= 10 * 8192 * greatest(relpages, 1)
    LOOP
      BEGIN
        EXECUTE 'ANALYZE ' || grown;
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
  END $$`);

/** Shortest time in ms between two looks at the growth of tables. */
const LOOK_AFTER_MS = 1_000;

/** After a look, this many times its duration passes before the next: so statistics take at most 1 % of the time. */
const LOOK_PAUSE = 100;

/** The message Query: PostgreSQL's errors are then a part of the response, and nothing is thrown. */
function simpleQuery(text: string): Buffer {
  const message = Buffer.from(`Q0000${text}\0`);
  message.writeInt32BE(message.length - 1, 1);
  return message;
}

/**
 * Replaces the network socket of a `pg` connection by an engine in this process. The engine has one session, so only one
 * stream may be open at a time.
 *
 * A statement blocks the process. So the first one of a turn of the event loop runs at once, and the next one when all sockets
 * of the turn have been read: their requests then share a statement.
 */
export class EngineStream extends Duplex {
  private engine: PGlite | undefined;
  /** The end of the turn in which a statement has run. */
  private turn: Promise<void> | undefined;
  private lookAt = 0;

  /**
   * @param open waits for the engine
   * @param bury takes an engine that has thrown, and what it has thrown; returns the error of the statement
   */
  constructor(
    private readonly open: () => Promise<PGlite>,
    private readonly bury: (engine: PGlite, thrown: unknown) => Error,
  ) {
    super();
  }

  connect(): this {
    this.start().then(
      () => this.emit('connect'),
      (error: Error) => this.destroy(error),
    );
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  override _read(): void {
    // `run` pushes the responses.
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    const messages = chunks.map(({ chunk }) => chunk).filter(([type]) => type !== TERMINATE);
    this.run(Buffer.concat(messages)).then(() => done(), done);
  }

  override _final(done: () => void): void {
    this.push(null);
    done();
  }

  /** Ends the transaction and drops the prepared statements and settings of the previous connection. */
  private async start(): Promise<void> {
    const engine = await this.open();
    // The pool has waited too long; another stream may have the session by now.
    if (this.destroyed) throw new Error('The connection was closed before it was ready');
    await this.onEngine(engine, async () => {
      await engine.exec('ROLLBACK');
      await engine.exec('DISCARD ALL');
    });
    this.engine = engine;
  }

  private async run(messages: Buffer): Promise<void> {
    const { engine } = this;
    if (messages.length === 0 || engine === undefined) return;
    if (this.turn !== undefined) {
      await this.turn;
      // Another stream may have the session by now.
      if (this.destroyed) return;
    }
    this.turn = nextTurn().then(() => (this.turn = undefined));
    const answer = await this.send(engine, messages);
    this.push(answer);
    if (performance.now() >= this.lookAt && answer.subarray(-IDLE.length).equals(IDLE)) await this.followGrowth(engine);
  }

  private async followGrowth(engine: PGlite): Promise<void> {
    const begun = performance.now();
    await this.send(engine, FOLLOW_GROWTH);
    const ended = performance.now();
    this.lookAt = ended + Math.max(LOOK_AFTER_MS, LOOK_PAUSE * (ended - begun));
  }

  private async send(engine: PGlite, messages: Buffer): Promise<Buffer> {
    const answer: Buffer[] = [];
    // Not `execProtocolRaw`: it keeps every response in memory. A piece is valid only during the call.
    const onRawData = (piece: Uint8Array): void => void answer.push(Buffer.from(piece));
    await this.onEngine(engine, () => engine.execProtocolRawStream(messages, { onRawData, syncToFs: false }));
    return Buffer.concat(answer);
  }

  /** An engine answers an error of PostgreSQL with a message; if it throws, it has ended. */
  private async onEngine(engine: PGlite, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      throw this.bury(engine, error);
    }
  }
}
