import { crc32 } from 'node:zlib';
import { ApiError } from '../platform/errors/api-error.js';
import { INVALID_CURSOR } from '../platform/errors/error-catalogue.js';
import { PET_STATUSES, type PetStatus } from './pet.entity.js';

/*
 * A cursor holds the last animal of a page and the filter of the list: a version byte, a filter byte, the id in 8
 * bytes, and a CRC-32 of the bytes before, in base64url. The checksum detects typing errors, truncation and changes. A
 * cursor gives access to nothing, so it needs no signature.
 */
const VERSION = 1;
const ID_OFFSET = 2;
const CHECKSUM_OFFSET = 10;
const LENGTH = 14;

/** Form and largest length of a cursor for the document. Twice what is needed, so that cursors may grow. */
export const CURSOR_PATTERN = '^[A-Za-z0-9_-]+$';
export const MAX_CURSOR_LENGTH = 40;

/** The cursor of the next page, after the one that ends with this animal. */
export function encodeCursor(lastId: bigint, status: PetStatus | undefined): string {
  const bytes = Buffer.allocUnsafe(LENGTH);
  bytes.writeUInt8(VERSION, 0);
  bytes.writeUInt8(filterByte(status), 1);
  bytes.writeBigInt64BE(lastId, ID_OFFSET);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, CHECKSUM_OFFSET)), CHECKSUM_OFFSET);
  return bytes.toString('base64url');
}

/**
 * The id after which the page begins.
 *
 * @throws ApiError INVALID_CURSOR when this service did not make the cursor, or made it for another status
 */
export function decodeCursor(cursor: string, status: PetStatus | undefined): bigint {
  const bytes = Buffer.from(cursor, 'base64url');
  // Node's decoder accepts any text, so compare the canonical encoding.
  const isOurs =
    bytes.length === LENGTH &&
    bytes.toString('base64url') === cursor &&
    bytes.readUInt8(0) === VERSION &&
    bytes.readUInt32BE(CHECKSUM_OFFSET) === crc32(bytes.subarray(0, CHECKSUM_OFFSET));
  if (!isOurs) {
    throw new ApiError(INVALID_CURSOR);
  }
  if (bytes.readUInt8(1) !== filterByte(status)) {
    throw new ApiError(
      INVALID_CURSOR,
      'cursor belongs to a list with another status; send the status it was made with',
    );
  }
  return bytes.readBigInt64BE(ID_OFFSET);
}

function filterByte(status: PetStatus | undefined): number {
  return status === undefined ? 0 : PET_STATUSES.indexOf(status) + 1;
}
