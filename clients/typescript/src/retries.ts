import type { PetStoreError } from './errors.js';

/** Proxies answer 502 and 504 when the connection to the service broke or took too long. */
const RETRIED_STATUSES: ReadonlySet<number | undefined> = new Set([429, 502, 503, 504]);
const RETRIED_CODES: ReadonlySet<string> = new Set(['network_error', 'timeout']);

/** Longest wait before the second attempt, in ms. It doubles with each further attempt. */
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 8_000;

/** Whether the same request may succeed if it is sent again. */
export function isRetryable({ code, status }: PetStoreError): boolean {
  return RETRIED_CODES.has(code) || RETRIED_STATUSES.has(status);
}

/**
 * Time to wait after a failed attempt, in ms: the time that the service asked for, and a random part of a backoff that
 * doubles, so that clients which failed together do not return together ("full jitter").
 *
 * @param attempt number of the failed attempt, from 1
 * @param random from 0 to 1
 */
export function retryDelay(attempt: number, retryAfterMs = 0, random = Math.random()): number {
  return retryAfterMs + random * Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (attempt - 1));
}
