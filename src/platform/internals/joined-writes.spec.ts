import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, Socket } from 'node:net';
import { canJoinWrites, joinWrites } from './joined-writes.js';

/** Counts the writes of a connection to the operating system: single and gathered ones. */
interface Writes {
  single: number;
  gathered: number;
}

function countWrites(socket: Socket): Writes {
  const writes: Writes = { single: 0, gathered: 0 };
  const handle = (socket as unknown as { _handle: Record<string, (...parameters: unknown[]) => unknown> })._handle;
  for (const name of [
    'writeBuffer',
    'writeUtf8String',
    'writeLatin1String',
    'writeAsciiString',
    'writeUcs2String',
    'writev',
  ]) {
    const write = handle[name] as (...parameters: unknown[]) => unknown;
    handle[name] = function (...parameters) {
      writes[name === 'writev' ? 'gathered' : 'single']++;
      return write.apply(this, parameters);
    };
  }
  return writes;
}

let server: Server;
beforeAll(async () => {
  server = createServer({ noDelay: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

/** The two ends of a connection. */
async function openPair(): Promise<[near: Socket, far: Socket]> {
  const far = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [[near]] = (await Promise.all([once(server, 'connection'), once(far, 'connect')])) as unknown as [
    [Socket],
    unknown,
  ];
  far.on('error', () => undefined);
  return [near, far];
}

async function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

type Piece = [chunk: string | Buffer, encoding: BufferEncoding | undefined];

/** Writes groups of pieces, each group while the connection is corked. */
async function send(near: Socket, groups: Piece[][]): Promise<{ called: number[]; bytesWritten: number }> {
  const called: number[] = [];
  let index = 0;
  for (const pieces of groups) {
    near.cork();
    for (const [chunk, encoding] of pieces) {
      const number = index++;
      near.write(chunk, encoding, () => called.push(number));
    }
    near.uncork();
  }
  near.end();
  await once(near, 'close');
  return { called, bytesWritten: near.bytesWritten };
}

async function transfer(groups: Piece[][], prepare: (socket: Socket) => void): Promise<unknown> {
  const [near, far] = await openPair();
  prepare(near);
  const [sent, bytes] = await Promise.all([send(near, groups), readAll(far)]);
  return { ...sent, bytes: bytes.toString('hex') };
}

const text = fc.oneof(
  fc.string({ unit: 'binary-ascii' }),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', 'é', 'ÿ', '€', '🐕', '\ud83d', '\udc15', 'a\ud83d', '\udc15b', 'abc', 'YQ==', 'f', '\ufeff'),
  fc.constantFrom(65_535, 65_536, 65_537, 200_000).map((length) => 'é'.repeat(length)),
);
const encoding = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<BufferEncoding>('latin1', 'utf8') },
  {
    weight: 1,
    arbitrary: fc.constantFrom<BufferEncoding | undefined>('utf-8', 'ascii', 'binary', 'base64', 'utf16le', undefined),
  },
);
const piece: fc.Arbitrary<Piece> = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(text, encoding) },
  { weight: 1, arbitrary: fc.uint8Array().map((bytes): Piece => [Buffer.from(bytes), undefined]) },
);
const oneEncoding = encoding.chain((same) =>
  fc.array(
    text.map((content): Piece => [content, same]),
    { maxLength: 6 },
  ),
);
const groups = fc.array(fc.oneof(fc.array(piece, { maxLength: 6 }), oneEncoding), { maxLength: 4 });

describe('a connection that joins its writes', () => {
  test('sends the bytes of an ordinary connection, and calls back in order', async () => {
    await fc.assert(
      fc.asyncProperty(groups, async (list) => {
        expect(await transfer(list, joinWrites)).toEqual(await transfer(list, () => undefined));
      }),
      { numRuns: 300 },
    );
  });

  test.each<[string, Piece[]]>([
    [
      'characters that are cut in two',
      [
        ['\ud83d', 'utf8'],
        ['\udc15', 'utf8'],
      ],
    ],
    [
      'padded base64',
      [
        ['YQ==', 'base64'],
        ['Yg==', 'base64'],
      ],
    ],
    [
      'latin1 and UTF-8',
      [
        ['é', 'latin1'],
        ['é', 'utf8'],
      ],
    ],
    [
      'nothing',
      [
        ['', 'utf8'],
        ['', 'latin1'],
      ],
    ],
    [
      'a buffer between texts',
      [
        ['é', 'latin1'],
        [Buffer.from('é'), undefined],
        ['é', 'latin1'],
      ],
    ],
  ])('sends the bytes of an ordinary connection: %s', async (_, pieces) => {
    expect(await transfer([pieces], joinWrites)).toEqual(await transfer([pieces], () => undefined));
  });

  test('joins texts of one encoding, up to a length', async () => {
    const count = async (pieces: Piece[]): Promise<Writes> => {
      const [near, far] = await openPair();
      joinWrites(near);
      const writes = countWrites(near);
      await Promise.all([send(near, [pieces]), readAll(far)]);
      return writes;
    };
    expect(
      await count([
        ['head', 'latin1'],
        ['body', 'latin1'],
        ['', 'utf8'],
      ]),
    ).toEqual({ single: 1, gathered: 0 });
    expect(
      await count([
        ['é', 'utf8'],
        ['', 'latin1'],
      ]),
    ).toEqual({ single: 1, gathered: 0 });
    expect(
      await count([
        ['a', 'utf8'],
        ['b', 'latin1'],
      ]),
    ).toEqual({ single: 0, gathered: 1 });
    expect(
      await count([
        ['a', 'utf8'],
        [Buffer.from('b'), undefined],
      ]),
    ).toEqual({ single: 0, gathered: 1 });
    const half = 'x'.repeat(32_768);
    expect(
      await count([
        [half, 'utf8'],
        [half, 'utf8'],
      ]),
    ).toEqual({ single: 1, gathered: 0 });
    expect(
      await count([
        [half, 'utf8'],
        [half, 'utf8'],
        ['x', 'utf8'],
      ]),
    ).toEqual({ single: 0, gathered: 1 });
  });

  test('reports a failure to the callback of each piece', async () => {
    const fail = async (prepare: (socket: Socket) => void): Promise<unknown[]> => {
      const [near, far] = await openPair();
      prepare(near);
      near.on('error', () => undefined);
      const errors: unknown[] = [];
      near.cork();
      for (const chunk of ['a', 'b', '']) near.write(chunk, 'latin1', (error) => errors.push([chunk, error?.name]));
      // Reset in the same turn of the event loop, so that the write itself fails.
      far.resetAndDestroy();
      const writes = countWrites(near);
      near.uncork();
      expect(writes.single + writes.gathered).toBe(1);
      await new Promise((resolve) => near.once('close', resolve));
      return errors;
    };
    const errors = await fail(joinWrites);
    expect(errors).toEqual([
      ['a', 'Error'],
      ['b', 'Error'],
      ['', 'Error'],
    ]);
    expect(errors).toEqual(await fail(() => undefined));
  });

  test('stops for a client that does not read, and continues when it reads', async () => {
    const [near, far] = await openPair();
    joinWrites(near);
    far.pause();
    const content = 'é'.repeat(30_000);
    let written = 0;
    // Write more than the buffers of the operating system hold.
    while (near.writableLength <= near.writableHighWaterMark && written < 64 * 1024 * 1024) {
      near.cork();
      near.write(content, 'utf8');
      near.write('x', 'utf8');
      near.uncork();
      written += 60_001;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(near.writableNeedDrain).toBe(true);
    const [, bytes] = await Promise.all([once(near, 'drain').then(() => near.end()), readAll(far)]);
    expect(bytes.length).toBe(written);
    expect(bytes.subarray(-60_001).toString()).toBe(`${content}x`);
  });
});

describe('an answer', () => {
  test.each([
    ['a text', 'a body with é', { single: 1, gathered: 0 }],
    ['no body', undefined, { single: 1, gathered: 0 }],
  ])('is one write: %s', async (_, body, expected) => {
    const http = createHttpServer((_request, response) => response.setHeader('X-A', '1').end(body));
    let writes: Writes | undefined;
    http.on('connection', (socket: Socket) => {
      joinWrites(socket);
      writes = countWrites(socket);
    });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    const response = await fetch(`http://127.0.0.1:${(http.address() as AddressInfo).port}`);
    expect(await response.text()).toBe(body ?? '');
    expect(writes).toEqual(expected);
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  });
});

describe('the check of Node', () => {
  let warn: jest.SpiedFunction<Logger['warn']>;
  beforeEach(() => {
    warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
  });
  afterEach(() => warn.mockRestore());

  test('accepts this version', () => {
    expect(canJoinWrites()).toBe(true);
    expect(warn).not.toHaveBeenCalled();
  });

  class WithoutGathering extends Socket {
    override cork(): void {}
  }
  class WithBuffers extends Socket {
    override write(text: unknown): boolean {
      return super.write(Buffer.from(String(text)));
    }
  }
  class Failing extends Socket {
    override write(): never {
      throw new Error('no trial');
    }
  }
  test.each<[difference: string, probe: new () => Socket]>([
    ["Node's sockets pass on waiting writes in another way", WithoutGathering],
    ["Node's sockets pass on waiting writes in another way", WithBuffers],
    ["Node's sockets fail on a trial write (Error: no trial)", Failing],
  ])('stays off with one line in the log when %s', (difference, Probe) => {
    expect(canJoinWrites(() => new Probe())).toBe(false);
    expect(warn.mock.calls).toEqual([[expect.stringContaining(`joined-writes stays off: ${difference}.`)]]);
  });
});
