import { Duplex } from 'node:stream';

/** What a stream needs of an engine: runs messages of PostgreSQL's protocol and hands out the answer in pieces. */
export interface ProtocolEngine {
  /** Makes the session as new: no transaction, no prepared statement, no setting of the connection before. */
  reset(): Promise<void>;
  /** Pieces are valid during the call alone. */
  execute(messages: Uint8Array, onData: (piece: Uint8Array) => void): Promise<void>;
}

const TERMINATE = 'X'.charCodeAt(0);

/**
 * The socket that `pg` believes it speaks to PostgreSQL through. Behind it is the one session of an engine in this
 * process, so there may be one such stream at a time.
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
    // Answers are pushed when they are there.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.run(chunk).then(() => done(), done);
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

/** Terminate ends a connection, and would end the engine. It is always the last message. */
function withoutTerminate(messages: Buffer): Buffer {
  // The startup message has no type; its first byte is the highest of its length.
  if (messages[0] === 0) return messages;
  let offset = 0;
  while (offset < messages.length && messages[offset] !== TERMINATE) {
    offset += 1 + messages.readUInt32BE(offset + 1);
  }
  return messages.subarray(0, offset);
}
