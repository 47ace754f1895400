import type { PGlite } from '@electric-sql/pglite';
import { Duplex } from 'node:stream';

/** The type of the message Terminate, which would end the engine. `pg` writes each message, or several, in one chunk. */
const TERMINATE = 'X'.charCodeAt(0);

/**
 * Replaces the network socket of a `pg` connection by an engine in this process. The engine has one session, so only one
 * stream may be open at a time.
 */
export class EngineStream extends Duplex {
  private engine: PGlite | undefined;

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
    const answer: Buffer[] = [];
    // Not `execProtocolRaw`: it keeps every response in memory. A piece is valid only during the call.
    const onRawData = (piece: Uint8Array): void => void answer.push(Buffer.from(piece));
    await this.onEngine(engine, () => engine.execProtocolRawStream(messages, { onRawData, syncToFs: false }));
    this.push(Buffer.concat(answer));
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
