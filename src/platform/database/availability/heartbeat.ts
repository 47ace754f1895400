import { Logger } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { untilArrivedAnswersAreRead } from '../connections/arrived-answers.js';
import { hangUp } from '../connections/hang-up.js';

/** Interval of the probes in ms. */
const INTERVAL_MS = 500;

/** Time in ms without an answer after which a database counts as silent. */
export const SILENCE_MS = 2_000;

/** Time in ms that an attempt to reach a silent database may take; the next one follows at once. */
const ATTEMPT_MS = 1_000;

/** Error codes of connections that nobody answered. */
const NOBODY_ANSWERED = /^(ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_AGAIN)/;

/** Marks a time-out. Its code is that of a connection that nobody answered. */
const TOO_LATE = Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' });

/**
 * What a probe has found. `answering`: the database has answered, be it with an error. `undecided`: no silence begins, and
 * none ends. A full pooler has accepted the client, but only an answer of the database itself counts.
 */
type ProbedState = 'answering' | 'silent' | 'undecided';

/**
 * Probes a database twice a second on a separate connection. A machine, network or process that has stopped sends nothing,
 * which looks like a slow statement. During such a silence, requests fail at once instead of after a time-out.
 *
 * A database that refuses connections or answers with an error is not silent: statements fail at once anyway.
 */
export class Heartbeat {
  private readonly log = new Logger(Heartbeat.name);
  private readonly stopping = new AbortController();
  private client: pg.Client | undefined;
  private beating: Promise<void> | undefined;
  private silentFrom: number | undefined;
  /** Whether the server has accepted the client, but not answered its first statement yet: a pooler may be full. */
  private isWaitingForSession = false;

  /**
   * @param createClient creates a client for the database
   * @param onSilence called when a silence begins, with a function that makes the error to report
   * @param onReturn called when a silence ends
   */
  constructor(
    private readonly createClient: () => pg.Client,
    private readonly onSilence: (error: () => Error) => void,
    private readonly onReturn: () => void,
  ) {}

  /** Whether the database sends no answer at all. */
  get isSilent(): boolean {
    return this.silentFrom !== undefined;
  }

  start(): void {
    this.beating = this.beat();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    this.hangUp();
    await this.beating;
  }

  private async beat(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      const askedAt = performance.now();
      const state = await this.probe(this.isSilent ? ATTEMPT_MS : SILENCE_MS);
      if (signal.aborted) return;
      if (state === 'silent') this.beginSilence(askedAt);
      if (state === 'answering') this.endSilence();
      const rest = askedAt + INTERVAL_MS - performance.now();
      if (rest > 0) await sleep(rest, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Probes once. After an error, the next probe takes a new connection. */
  private async probe(timeoutMs: number): Promise<ProbedState> {
    const error = await this.ask(timeoutMs);
    const isWaitingForSession = error === TOO_LATE && this.isWaitingForSession;
    if (error !== undefined) this.hangUp();
    if (isWaitingForSession) return 'undecided';
    if (NOBODY_ANSWERED.test(error?.code ?? '')) return 'silent';
    return 'answering';
  }

  /** Sends a statement, on a new connection if there is none. Returns the error, also when no answer comes in time. */
  private async ask(timeoutMs: number): Promise<{ code?: string } | undefined> {
    const answered = new AbortController();
    const tooLate = sleep(timeoutMs, undefined, { signal: answered.signal })
      .then(untilArrivedAnswersAreRead)
      .then(() => Promise.reject(TOO_LATE));
    try {
      await Promise.race([this.query(), tooLate]);
      return undefined;
    } catch (error) {
      return error as { code?: string };
    } finally {
      answered.abort();
      tooLate.catch(() => undefined);
    }
  }

  private async query(): Promise<void> {
    if (this.client === undefined) {
      const client = (this.client = this.createClient());
      // The next probe reports the error.
      client.on('error', () => undefined);
      await client.connect();
      this.isWaitingForSession = true;
    }
    await this.client.query('SELECT');
    this.isWaitingForSession = false;
  }

  private beginSilence(from: number): void {
    if (this.silentFrom === undefined) {
      this.silentFrom = from;
      this.log.warn(`The database does not answer. Requests that need it are answered 503 at once until it does.`);
      this.onSilence(() => {
        const message = `The database has not answered for ${secondsSince(from)} s`;
        return Object.assign(new Error(message), { code: 'ETIMEDOUT' });
      });
    }
  }

  private endSilence(): void {
    if (this.silentFrom !== undefined) {
      this.log.log(`The database answers again, after ${secondsSince(this.silentFrom)} s.`);
      this.silentFrom = undefined;
      this.onReturn();
    }
  }

  private hangUp(): void {
    hangUp(this.client);
    this.client = undefined;
    this.isWaitingForSession = false;
  }
}

function secondsSince(from: number): number {
  return Math.round((performance.now() - from) / 1_000);
}
