import { once } from 'node:events';
import { EngineStream } from './engine-stream.js';

const STARTUP = Buffer.from([0, 0, 0, 8, 0, 3, 0, 0]);

/** Echoes its input in two pieces, the second one in the memory of the first one, as the engine reuses its buffer. */
class Echo {
  readonly calls: string[] = [];
  private readonly memory = Buffer.alloc(1024);

  exec(statement: string): Promise<[]> {
    this.calls.push(statement);
    return Promise.resolve([]);
  }

  async execProtocolRawStream(
    messages: Uint8Array,
    { onRawData }: { onRawData: (piece: Uint8Array) => void },
  ): Promise<void> {
    this.calls.push(Buffer.from(messages).toString('latin1'));
    for (const half of [messages.subarray(0, 3), messages.subarray(3)]) {
      this.memory.set(half);
      onRawData(this.memory.subarray(0, half.length));
    }
    await Promise.resolve();
  }
}

let engine: Echo;
let stream: EngineStream;
beforeEach(async () => {
  engine = new Echo();
  stream = new EngineStream(engine);
  await once(stream.connect(), 'connect');
});

test('the session is reset before the start-up message of each connection', async () => {
  stream.write(STARTUP);
  const [answer] = (await once(stream, 'data')) as [Buffer];
  expect(answer).toEqual(STARTUP);
  expect(engine.calls).toEqual(['ROLLBACK', 'DISCARD ALL', STARTUP.toString('latin1')]);
});

test('the message Terminate ends the stream, and does not reach the engine', async () => {
  stream.resume().end(Buffer.from('X\0\0\0\x04'));
  await once(stream, 'close');
  expect(engine.calls).toEqual(['ROLLBACK', 'DISCARD ALL']);
});

test('an error of the engine ends the connection', async () => {
  engine.execProtocolRawStream = () => Promise.reject(new Error('out of memory'));
  stream.write(STARTUP);
  const [error] = (await once(stream, 'error')) as [Error];
  expect(error.message).toBe('out of memory');
});
