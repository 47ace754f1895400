import type { QueryRunner } from 'typeorm';
import { type Query, replaceQuery } from './replace-query.js';
import { LOCK_TIMEOUT_MS } from './schema-lock.js';

const CONCURRENTLY = /\bCONCURRENTLY\b/i;

/** Matches the name of the index that a statement creates, as it is written in the statement. */
const CREATED_INDEX =
  /^\s*CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+(?:IF\s+NOT\s+EXISTS\s+)?("(?:[^"]|"")+"|[\w$]+)\s+ON\b/i;

/**
 * Runs `work`, whose statements with CONCURRENTLY may be repeated after a crash or an error.
 *
 * - PostgreSQL leaves an invalid index behind when `CREATE INDEX CONCURRENTLY` does not finish. It is dropped before the
 *   statement runs again. A valid index stays: write IF NOT EXISTS.
 * - These statements have no `lock_timeout`: they wait for all transactions that began before them, and block neither reads
 *   nor writes meanwhile.
 */
export async function withConcurrentIndexes(queryRunner: QueryRunner, work: () => Promise<void>): Promise<void> {
  const restore = replaceQuery(queryRunner, (query) => async (text, ...others) => {
    if (!CONCURRENTLY.test(text)) return query(text, ...others);
    await query('SET lock_timeout = 0');
    try {
      const index = CREATED_INDEX.exec(text)?.[1];
      if (index !== undefined) await dropInvalid(query, index);
      return await query(text, ...others);
    } finally {
      await query(`SET lock_timeout = ${LOCK_TIMEOUT_MS}`).catch(() => undefined);
    }
  });
  try {
    await work();
  } finally {
    restore();
  }
}

/** @param index the name of the index, quoted if it needs quotes */
async function dropInvalid(query: Query, index: string): Promise<void> {
  const invalid = await query('SELECT 1 FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid', [index]);
  if ((invalid as unknown[]).length > 0) await query(`DROP INDEX CONCURRENTLY ${index}`);
}
