import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { Request } from 'express';
import type { RequestStep, StoredApiKey } from '#access';
import type { Operation } from '#operations';
import { Database, epochOf, isOutcomeUnknown, type Statement, timeOf } from '#postgres';
import { Clock } from '#runtime';

/** Time in ms between two writes. A crash loses the calls of this time. */
const WRITE_INTERVAL_MS = 5_000;

/** Largest number of counters of one statement, so that it is short. */
const MAX_COUNTERS_PER_STATEMENT = 1_000;

/**
 * Largest number of counters (one per key, operation and day) in one process: 10,000 keys in use, each with five
 * operations. They take 15 MB. Calls beyond them are not counted.
 */
const MAX_COUNTERS = 50_000;

export const DAY_MS = 86_400_000;

/** Calls of one operation with one key on one day. */
export interface UsageRecord {
  readonly keyId: bigint;
  /** The operationId. */
  readonly operation: string;
  /** Days since 1970-01-01, UTC. */
  readonly day: number;
  calls: number;
  lastCallAt: number;
  userAgent: string | undefined;
}

/** Sum of the calls of a client, with the time and user agent of the last call. */
export interface UsageSummary {
  readonly client: string;
  readonly calls: bigint;
  readonly lastCallAt: Date;
  readonly lastUserAgent: string | null;
}

/** Longest stored `User-Agent` in characters; a longer one is cut. */
const MAX_USER_AGENT_LENGTH = 200;

type Row = [client: string, calls: string, lastCallAt: string, lastUserAgent: string | null];

// Several instances update the same rows. The statement locks its rows in the order of their key, so two instances
// cannot deadlock. Usage of a deleted key is dropped.
const ADD: Statement = {
  name: 'key_usage_add',
  text: `INSERT INTO key_usage (key_id, operation, day, calls, last_call_at, last_user_agent)
    SELECT called.* FROM unnest($1::bigint[], $2::text[], $3::date[], $4::bigint[], $5::timestamptz[], $6::text[])
      AS called (key_id, operation, day, calls, last_call_at, last_user_agent)
    JOIN api_key ON id = key_id ORDER BY key_id, day, operation
    ON CONFLICT (key_id, day, operation) DO UPDATE SET
      calls = key_usage.calls + excluded.calls,
      last_call_at = greatest(key_usage.last_call_at, excluded.last_call_at),
      last_user_agent = CASE WHEN excluded.last_call_at >= key_usage.last_call_at
        THEN excluded.last_user_agent ELSE key_usage.last_user_agent END`,
};
const SUM_BY_CLIENT: Statement = {
  name: 'key_usage_sum_by_client',
  text: `SELECT client.name, sum(calls)::bigint, ${epochOf('max(last_call_at)')},
      (array_agg(last_user_agent ORDER BY last_call_at DESC))[1]
    FROM key_usage JOIN api_key ON api_key.id = key_id JOIN client ON client.id = client_id
    WHERE operation = $1 AND day > $2::date - $3::int AND day <= $2::date
    GROUP BY client.id ORDER BY sum(calls) DESC, client.name`,
};
// At most 1,000 rows, so that the statement is short. Both conditions on the day: of a partitioned table only the partitions of old days are opened.
export const DELETE_BEFORE: Statement = {
  name: 'key_usage_delete_before',
  text: `DELETE FROM key_usage WHERE day < $1::date AND (key_id, day, operation) IN (
      SELECT key_id, day, operation FROM key_usage WHERE day < $1::date
      ORDER BY day, operation, key_id LIMIT 1000
    ) RETURNING 1`,
};
// The text of a date itself depends on DateStyle.
const FIRST_DAY: Statement = {
  name: 'key_usage_first_day',
  text: `SELECT to_char(min(day), 'YYYY-MM-DD') FROM key_usage`,
};

/**
 * Counts every call with a valid key, whatever its response. Counts are kept in memory, and written every 5 s and at shutdown.
 * If a write fails, its counts are kept for the next one, unless they may have been stored: no call counts twice.
 */
@Injectable()
export class KeyUsage implements RequestStep, OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger(KeyUsage.name);
  private counters = new Map<string, UsageRecord>();
  failedWrites = 0;
  /** Calls since the start that were not counted, or of which no response confirms it. */
  uncountedCalls = 0;
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => {
      if (this.writing === undefined) void this.write();
    }, WRITE_INTERVAL_MS).unref();
  }

  /** Runs after the last response, while the database is still open. */
  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.write();
  }

  admit({ context, headers }: Request, { name }: Operation, { id }: StoredApiKey): void {
    this.count(id, name, headers['user-agent'], context.now);
  }

  /** Counts calls whose last one was at `now`, in ms. */
  count(keyId: bigint, operation: string, userAgent: string | undefined, now = this.clock.now(), calls = 1): void {
    const day = Math.floor(now / DAY_MS);
    const name = `${keyId} ${day} ${operation}`;
    const counter = this.counters.get(name);
    if (counter !== undefined) {
      counter.calls += calls;
      if (now < counter.lastCallAt) return;
      counter.lastCallAt = now;
      counter.userAgent = userAgent;
    } else if (this.counters.size < MAX_COUNTERS) {
      this.counters.set(name, { keyId, operation, day, calls, lastCallAt: now, userAgent });
    } else {
      this.uncountedCalls += calls;
    }
  }

  /** Writes everything that was counted before the call. After an error the counts wait for the next write. */
  async write(): Promise<void> {
    while (this.writing !== undefined) await this.writing;
    this.writing = this.writeAll().finally(() => (this.writing = undefined));
    await this.writing;
  }

  private async writeAll(): Promise<void> {
    const records = [...this.counters.values()];
    this.counters = new Map();
    try {
      while (records.length > 0) {
        await this.add(records.slice(0, MAX_COUNTERS_PER_STATEMENT));
        records.splice(0, MAX_COUNTERS_PER_STATEMENT);
      }
    } catch (error) {
      this.failedWrites++;
      this.log.warn(`The usage of API keys could not be written and waits: ${(error as Error).message}`);
      const unconfirmed = isOutcomeUnknown(error) ? records.splice(0, MAX_COUNTERS_PER_STATEMENT) : [];
      for (const { calls } of unconfirmed) this.uncountedCalls += calls;
      for (const { keyId, operation, userAgent, lastCallAt, calls } of records) {
        this.count(keyId, operation, userAgent, lastCallAt, calls);
      }
    }
  }

  /** Adds calls to the stored ones, all or none. Drops the usage of keys that do not exist. */
  async add(records: readonly UsageRecord[]): Promise<void> {
    await this.database.write(ADD, [
      records.map(({ keyId }) => keyId),
      records.map(({ operation }) => operation),
      records.map(({ day }) => isoDay(day * DAY_MS)),
      records.map(({ calls }) => calls),
      records.map(({ lastCallAt }) => new Date(lastCallAt)),
      records.map(({ userAgent }) => userAgent?.slice(0, MAX_USER_AGENT_LENGTH) ?? null),
    ]);
  }

  /** Sums of the last `days` days, `today` included, most calls first. */
  async sumByClient(operation: string, today: string, days: number): Promise<UsageSummary[]> {
    const rows = await this.database.read<Row>(SUM_BY_CLIENT, [operation, today, days]);
    return rows.map(([client, calls, lastCallAt, lastUserAgent]) => {
      return { client, calls: BigInt(calls), lastCallAt: timeOf(lastCallAt), lastUserAgent };
    });
  }

  async deleteBefore(day: string): Promise<number> {
    return (await this.database.write(DELETE_BEFORE, [day])).length;
  }

  /** The first day with usage of any operation; null without usage. */
  async firstDay(): Promise<string | null> {
    const [[day]] = (await this.database.read(FIRST_DAY, [])) as [[string | null]];
    return day;
  }
}

/** The day of a time in UTC, as `2027-03-01`. */
export function isoDay(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
