import { OURS } from '../options.js';

/** What `requests.lua` prints after a turn. */
export interface LoadResult {
  readonly requests: number;
  readonly durationUs: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly failures: number;
}

/**
 * Reads the result from the output of wrk. Requests of a peer may fail under thousands of connections; the table has their
 * number.
 *
 * @throws Error when a request of this service failed, or the server responded to none
 */
export function readLoadResult(server: string, output: string): LoadResult {
  const line = /^RESULT (.*)$/m.exec(output)?.[1];
  const result = line === undefined ? undefined : (JSON.parse(line) as LoadResult);
  if (result === undefined || result.requests === 0 || (result.failures > 0 && server.startsWith(OURS))) {
    throw new Error(`${server} failed under load: ${output}`);
  }
  return result;
}
