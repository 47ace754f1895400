import { Logger } from '@nestjs/common';
import type pg from 'pg';
import { hangUp } from '#internals';
import type { ServicePool } from '../connections/service-pool.js';

/** Interval in ms of the look at the pool. */
const INTERVAL_MS = 500;

/**
 * Number of looks in a row at a busy pool without a response, after which the database is tried. Not a time: a process
 * that did not run for a while has not read the responses that came meanwhile.
 */
const LOOKS = 3;

/** Longest time in ms of a trial. */
const TRIAL_MS = 1_000;

/** Codes and messages of connections that got no response. */
const NOBODY_ANSWERED = /^(ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_AGAIN|timeout expired)/;

/**
 * Notices that a database sends nothing at all, because its machine, network or process has stopped; that looks like a slow
 * statement. When a busy pool gets no response for about 2 s, a new connection is tried. If that fails, too,
 * requests fail at once until a trial succeeds.
 *
 * A database that refuses connections is not silent: statements fail at once anyway.
 */
export class Breaker {
  private readonly log = new Logger(Breaker.name);
  private timer: NodeJS.Timeout | undefined;
  private trial: pg.Client | undefined;
  /** `answered` of the pool at the last look. */
  private answered = 0;
  private looks = 0;

  /** @param createClient creates a client for the database, with this longest time in ms to connect */
  constructor(
    private readonly pool: ServicePool,
    private readonly createClient: (timeoutMs: number) => pg.Client,
  ) {}

  start(): void {
    this.timer = setInterval(() => void this.look(), INTERVAL_MS).unref();
  }

  stop(): void {
    clearInterval(this.timer);
    hangUp(this.trial);
  }

  private async look(): Promise<void> {
    const { pool } = this;
    pool.countStandbyWaits().catch(() => undefined);
    this.looks = pool.busy > 0 && pool.answered === this.answered ? this.looks + 1 : 0;
    this.answered = pool.answered;
    if (this.trial !== undefined || (this.looks < LOOKS && !pool.isSilent)) return;
    const { answered } = pool;
    const isAnswering = await this.try();
    this.looks = 0;
    if (isAnswering && pool.isSilent) {
      pool.endSilence();
      this.log.log('The database responds again.');
    } else if (!isAnswering && !pool.isSilent && pool.answered === answered) {
      this.log.warn('The database does not respond. Requests that need it get 503 at once until it does.');
      pool.beginSilence(Object.assign(new Error('The database does not respond'), { code: 'ETIMEDOUT' }));
    }
  }

  /** Whether a new connection gets a response, be it with an error. */
  private async try(): Promise<boolean> {
    try {
      const client = (this.trial = this.createClient(TRIAL_MS));
      client.on('error', () => undefined);
      await client.connect();
      return true;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return !NOBODY_ANSWERED.test(code ?? message);
    } finally {
      hangUp(this.trial);
      this.trial = undefined;
    }
  }
}
