import { Logger } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import pg, { type ClientConfig } from 'pg';
import { hangUp } from '../pg-connection.internals.js';
import type { ServicePool } from './service-pool.js';

const INTERVAL_MS = 500;

/**
 * Number of looks in a row at a busy pool without a response, after which the database is tried. Not a time: a process
 * that did not run for a while has not read the responses that came meanwhile.
 */
const LOOKS = 3;

const TRIAL_MS = 1_000;

const NOBODY_ANSWERED = /^(ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_AGAIN|timeout expired)/;

/**
 * Notices that a database sends nothing at all, because its machine, network or process has stopped; that looks like a slow
 * statement. When a busy pool gets no response for about 2 s, a new connection is tried. If that fails, too,
 * requests fail at once until a trial succeeds. Ends when the pool does.
 *
 * A database that refuses connections is not silent: statements fail at once anyway.
 */
export async function breakOnSilence(pool: ServicePool, settings: ClientConfig): Promise<void> {
  const log = new Logger('Breaker');
  for (let [looks, answered] = [0, 0]; !pool.ended; await sleep(INTERVAL_MS, undefined, { ref: false })) {
    looks = pool.busy > 0 && pool.answered === answered ? looks + 1 : 0;
    ({ answered } = pool);
    if (looks < LOOKS && !pool.isSilent) continue;
    const isAnswering = await isAnswered(settings);
    looks = 0;
    if (isAnswering && pool.isSilent) {
      pool.setSilence(undefined);
      log.log('The database responds again.');
    } else if (!isAnswering && !pool.isSilent && pool.answered === answered) {
      log.warn('The database does not respond. Requests that need it get 503 at once until it does.');
      pool.setSilence(Object.assign(new Error('The database does not respond'), { code: 'ETIMEDOUT' }));
    }
  }
}

/** Whether a new connection gets a response, be it with an error. */
async function isAnswered(settings: ClientConfig): Promise<boolean> {
  let client: pg.Client | undefined;
  try {
    client = new pg.Client({ ...settings, connectionTimeoutMillis: TRIAL_MS });
    client.on('error', () => undefined);
    await client.connect();
    return true;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return !NOBODY_ANSWERED.test(code ?? message);
  } finally {
    hangUp(client);
  }
}
