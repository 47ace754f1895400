import type { PGlite } from '@electric-sql/pglite';
import { Duplex } from 'node:stream';

/** The type of the message Terminate, which would end the engine. `pg` writes each message, or several, in one chunk. */
const TERMINATE = 'X'.charCodeAt(0);

/**
 * Replaces the network socket of a `pg` connection by an engine in this process. The engine has one session, so only one
 * stream may be open at a time.
 */
export class EngineStream extends Duplex {
  constructor(private readonly engine: Pick<PGlite, 'exec' | 'execProtocolRawStream'>) {
    super();
  }

  connect(): this {
    this.reset().then(
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
  private async reset(): Promise<void> {
    await this.engine.exec('ROLLBACK');
    await this.engine.exec('DISCARD ALL');
  }

  private async run(messages: Buffer): Promise<void> {
    if (messages.length === 0) return;
    const answer: Buffer[] = [];
    // Not `execProtocolRaw`: it keeps every response in memory. A piece is valid only during the call.
    const onRawData = (piece: Uint8Array): void => void answer.push(Buffer.from(piece));
    await this.engine.execProtocolRawStream(messages, { onRawData, syncToFs: false });
    this.push(Buffer.concat(answer));
  }
}
