import { Duplex } from 'node:stream';

/** A PostgreSQL session that takes and returns messages of PostgreSQL's wire protocol. */
export interface ProtocolEngine {
  /** Ends the transaction and drops the prepared statements and settings of the previous connection. */
  reset(): Promise<void>;
  /** @param onData receives the answer in pieces, each valid only during the call */
  execute(messages: Uint8Array, onData: (piece: Uint8Array) => void): Promise<void>;
}

const TERMINATE = 'X'.charCodeAt(0);

/**
 * Replaces the network socket of a `pg` connection by an engine in this process. The engine has one session, so only one
 * stream may be open at a time.
 */
export class EngineStream extends Duplex {
  private isStarted = false;

  constructor(private readonly engine: ProtocolEngine) {
    super();
  }

  connect(): this {
    process.nextTick(() => this.emit('connect'));
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
    this.run(Buffer.concat(chunks.map(({ chunk }) => chunk))).then(() => done(), done);
  }

  override _final(done: () => void): void {
    this.push(null);
    done();
  }

  private async run(messages: Buffer): Promise<void> {
    if (!this.isStarted) {
      await this.engine.reset();
      this.isStarted = true;
    }
    const request = withoutTerminate(messages);
    if (request.length === 0) return;
    const answer: Buffer[] = [];
    await this.engine.execute(request, (piece) => answer.push(Buffer.from(piece)));
    this.push(Buffer.concat(answer));
  }
}

/** Removes the message Terminate, always the last one: it would end the engine. */
function withoutTerminate(messages: Buffer): Buffer {
  // The startup message has no type byte; it begins with its length, whose first byte is 0.
  if (messages[0] === 0) return messages;
  let offset = 0;
  while (offset < messages.length && messages[offset] !== TERMINATE) {
    offset += 1 + messages.readUInt32BE(offset + 1);
  }
  return messages.subarray(0, offset);
}
