import { Duplex } from 'node:stream';

/** A PostgreSQL session that takes and returns messages of PostgreSQL's wire protocol. */
export interface ProtocolEngine {
  /** Ends the transaction and drops the prepared statements and settings of the previous connection. */
  reset(): Promise<void>;
  /** @param onData receives the answer in pieces, each valid only during the call */
  execute(messages: Uint8Array, onData: (piece: Uint8Array) => void): Promise<void>;
}

/** The type of the message Terminate, which would end the engine. `pg` writes each message, or several, in one chunk. */
const TERMINATE = 'X'.charCodeAt(0);

/**
 * Replaces the network socket of a `pg` connection by an engine in this process. The engine has one session, so only one
 * stream may be open at a time.
 */
export class EngineStream extends Duplex {
  constructor(private readonly engine: ProtocolEngine) {
    super();
  }

  connect(): this {
    this.engine.reset().then(
      () => this.emit('connect'),
      (error: Error) => this.destroy(error),
    );
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  override _read(): void {
    // `run` pushes the answers.
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    const messages = chunks.map(({ chunk }) => chunk).filter(([type]) => type !== TERMINATE);
    this.run(Buffer.concat(messages)).then(() => done(), done);
  }

  override _final(done: () => void): void {
    this.push(null);
    done();
  }

  private async run(messages: Buffer): Promise<void> {
    if (messages.length === 0) return;
    const answer: Buffer[] = [];
    await this.engine.execute(messages, (piece) => answer.push(Buffer.from(piece)));
    this.push(Buffer.concat(answer));
  }
}
