import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/*
 * A key is the prefix, 43 base62 characters with 256 random bits, and 6 base62 characters with the CRC-32 of everything
 * before. The prefix lets secret scanners find a leaked key. The checksum lets scanners and the service recognise a
 * typing error.
 */
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The operator's request cannot be carried out. The message says why, and what to do instead. */
export class ApiKeyRequestError extends Error {
  override readonly name = 'ApiKeyRequestError';
}

/** Makes a key from 256 random bits. The key is a secret: show it once, store only its hash. */
export function createApiKey(apiKeyPrefix: string): string {
  const random = BigInt(`0x${randomBytes(32).toString('hex')}`);
  const unsigned = apiKeyPrefix + base62(random, SECRET_LENGTH);
  return unsigned + checksum(unsigned);
}

/** Whether a text has the form of a key of this service, but the wrong checksum. */
export function hasWrongChecksum(token: string, apiKeyPrefix: string): boolean {
  const looksLikeKey = new RegExp(`^${apiKeyPrefix}[0-9A-Za-z]{${SECRET_LENGTH + CHECKSUM_LENGTH}}$`).test(token);
  return looksLikeKey && token.slice(-CHECKSUM_LENGTH) !== checksum(token.slice(0, -CHECKSUM_LENGTH));
}

/**
 * The SHA-256 of a key, 32 bytes; nothing else of the secret is stored. A key of 256 random bits needs no salt and no
 * slow hash.
 */
export function hashApiKey(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** The first 12 characters of a key, for display. They reveal at most 42 of its 256 bits. */
export function displayedPrefix(token: string): string {
  return token.slice(0, Math.min(12, Math.floor(token.length / 3)));
}

function checksum(text: string): string {
  return base62(BigInt(crc32(text)), CHECKSUM_LENGTH);
}

function base62(value: bigint, length: number): string {
  return length === 0 ? '' : base62(value / 62n, length - 1) + BASE62.charAt(Number(value % 62n));
}
