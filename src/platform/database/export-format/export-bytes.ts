import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ByteReader, damaged } from './export-format.js';

/** The first two bytes of gzip (RFC 1952). */
const GZIP = Buffer.from([0x1f, 0x8b]);

/** A reader of an export's bytes; unzips them if they are gzipped. */
export async function bytesOf(source: AsyncIterable<Buffer>): Promise<ByteReader> {
  const reader = new ByteReader(source);
  if (!(await reader.peek(GZIP.length)).equals(GZIP)) return reader;
  return new ByteReader(unzipped(reader.rest()));
}

async function* unzipped(zipped: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: 256 * 1024 });
  const input = Readable.from(zipped);
  input.once('error', (error) => gunzip.destroy(error));
  try {
    for await (const piece of input.pipe(gunzip)) yield piece as Buffer;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'Z_BUF_ERROR') throw damaged('it ends too early');
    throw code?.startsWith('Z_') ? damaged('it cannot be unzipped') : error;
  } finally {
    input.destroy();
    gunzip.destroy();
  }
}
