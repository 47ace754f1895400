import { gzipSync } from 'node:zlib';
import { StartupError } from '../../errors/startup-error.js';
import { bytesOf } from './export-bytes.js';
import { type ExportHeader, FrameReader, FrameWriter } from './export-format.js';

const HEADER: ExportHeader = {
  createdAt: '2026-11-22T10:00:00.000Z',
  service: '1.0.0',
  database: 'PostgreSQL 18.1',
  migrations: ['CreateVisit1795219200000'],
  tables: [{ name: 'visit', columns: [{ name: 'id', type: 'bigint' }], rows: 5 }],
  sequences: [{ name: 'visit_id_seq', lastValue: '9223372036854775807', isCalled: true }],
};
const ROWS = [
  { table: 'visit', rows: 2, bytes: Buffer.from('1\n2\n') },
  { table: 'visit', rows: 2, bytes: Buffer.from('3\n4\n') },
  { table: 'visit', rows: 1, bytes: Buffer.from('5\n') },
];

const writer = new FrameWriter();
const frames = [writer.header(HEADER), ...ROWS.map((rows) => writer.rows(rows))];
const file = Buffer.concat(frames);

async function* inPieces(bytes: Buffer, size = bytes.length || 1): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += size) {
    await Promise.resolve();
    yield bytes.subarray(start, start + size);
  }
}

async function read(bytes: Buffer, pieceSize?: number): Promise<unknown[]> {
  const reader = new FrameReader(await bytesOf(inPieces(bytes, pieceSize)));
  const found: unknown[] = [await reader.header()];
  for (let index = 0; index < ROWS.length; index++) found.push(await reader.rows());
  await reader.end();
  return found;
}

const REFUSAL = /^(The export is damaged: |This is no export of this service\. |The export has format )/;

async function refusalOf(bytes: Buffer): Promise<string> {
  const error: unknown = await read(bytes).then(
    () => new Error('It was read.'),
    (failure: unknown) => failure,
  );
  expect(error).toBeInstanceOf(StartupError);
  return (error as Error).message;
}

test.each([1, 7, 100, undefined])(
  'a written export is read completely, gzipped or not, in pieces of %s bytes',
  async (size) => {
    expect(await read(file, size)).toEqual([HEADER, ...ROWS]);
    expect(await read(gzipSync(file), size)).toEqual([HEADER, ...ROWS]);
  },
);

test('a file with any single byte changed, removed or added is refused', async () => {
  for (let position = 0; position < file.length; position++) {
    const before = file.subarray(0, position);
    const after = file.subarray(position + 1);
    const byte = file[position] as number;
    for (const variant of [byte ^ 1, byte ^ 0x20, 0, 0x20]) {
      if (variant === byte) continue;
      expect(await refusalOf(Buffer.concat([before, Buffer.from([variant]), after]))).toMatch(REFUSAL);
    }
    expect(await refusalOf(Buffer.concat([before, after]))).toMatch(REFUSAL);
    expect(await refusalOf(Buffer.concat([before, Buffer.from([byte, byte]), after]))).toMatch(REFUSAL);
  }
});

test('a file that is cut anywhere is refused, gzipped or not', async () => {
  for (let length = 0; length < file.length; length++) {
    expect(await refusalOf(file.subarray(0, length))).toMatch(REFUSAL);
  }
  const zipped = gzipSync(file);
  for (let length = 0; length < zipped.length; length++) {
    expect(await refusalOf(zipped.subarray(0, length))).toMatch(REFUSAL);
  }
});

test.each([
  ['left out', [0, 2, 3]],
  ['repeated', [0, 1, 1, 2, 3]],
  ['moved', [0, 2, 1, 3]],
  ['added', [0, 1, 2, 3, 3]],
])('a file with a whole frame %s is refused', async (_, order) => {
  expect(await refusalOf(Buffer.concat(order.map((index) => frames[index] as Buffer)))).toMatch(
    /^The export is damaged: /,
  );
});

test('a gzipped file with any bit changed is refused, or reads the same', async () => {
  const zipped = gzipSync(file);
  let refused = 0;
  for (let position = 0; position < zipped.length; position++) {
    const changed = Buffer.from(zipped);
    changed[position] = (changed[position] as number) ^ (1 << (position % 8));
    await read(changed).then(
      // Name, time and system in the header of gzip do not belong to the content.
      (found) => expect(found).toEqual([HEADER, ...ROWS]),
      (error: Error) => {
        expect(error.message).toMatch(REFUSAL);
        refused += 1;
      },
    );
  }
  expect(refused).toBeGreaterThan(zipped.length - 10);
});

test.each([
  ['nothing', ''],
  ['a dump of PostgreSQL', '--\n-- PostgreSQL database dump\n--\n'],
  ['JSON', '{"visits":[]}\n'],
  ['a line without end', 'x'.repeat(100_000)],
  ['bytes', '\0\x01\x02\xff\n'],
])('%s is refused as no export', async (_, text) => {
  const message = 'This is no export of this service. Nothing was imported. Name a file that `petstore export` wrote.';
  expect(await refusalOf(Buffer.from(text, 'latin1'))).toBe(message);
  if (text !== '') expect(await refusalOf(gzipSync(text))).toBe(message);
});

test('a later format is refused with its number', async () => {
  const later = Buffer.from(file.toString('latin1').replace('"petstore-export":1', '"petstore-export":2'), 'latin1');
  expect(await refusalOf(later)).toBe(
    'The export has format 2, and this version reads format 1. Nothing was imported. Import it with the version that wrote it.',
  );
});

test('a frame of more than 256 MiB is neither written nor read', async () => {
  const large = { length: 256 * 1024 * 1024 + 1 } as Buffer;
  expect(() => new FrameWriter().rows({ table: 'visit', rows: 1, bytes: large })).toThrow(
    'Table visit has rows of more than 256 MiB, which an export cannot hold. Use pg_dump.',
  );
  const line = `{"table":"visit","rows":1,"bytes":${256 * 1024 * 1024 + 1},"sha256":"00"}\n`;
  async function* endless(): AsyncGenerator<Buffer> {
    yield Buffer.concat([frames[0] as Buffer, Buffer.from(line)]);
    await Promise.resolve();
    throw new Error('It reads on.');
  }
  const reader = new FrameReader(await bytesOf(endless()));
  await reader.header();
  await expect(reader.rows()).rejects.toThrow('The export is damaged: a checksum is wrong.');
});
