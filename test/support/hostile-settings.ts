import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { administerTestDatabase, type TestDatabase } from './database.js';

/** PostgreSQL's "Client Connection Defaults" and "Version and Platform Compatibility", with values that nobody expects. */
export const HOSTILE: Readonly<Record<string, string>> = {
  array_nulls: 'off',
  backslash_quote: 'off',
  bytea_output: 'escape',
  client_encoding: 'LATIN1',
  client_min_messages: 'debug1',
  default_table_access_method: 'heap',
  default_tablespace: 'nowhere',
  default_text_search_config: 'pg_catalog.german',
  default_toast_compression: 'pglz',
  default_transaction_deferrable: 'on',
  default_transaction_isolation: 'serializable',
  escape_string_warning: 'on',
  extra_float_digits: '-15',
  gin_fuzzy_search_limit: '1',
  idle_in_transaction_session_timeout: '1',
  idle_session_timeout: '50',
  intervalstyle: 'sql_standard',
  jit_above_cost: '0',
  lock_timeout: '1',
  plan_cache_mode: 'force_generic_plan',
  quote_all_identifiers: 'on',
  row_security: 'off',
  standard_conforming_strings: 'off',
  synchronize_seqscans: 'off',
  temp_tablespaces: 'nowhere',
  timezone: 'Asia/Kathmandu',
  transform_null_equals: 'on',
  xmlbinary: 'hex',
  xmloption: 'document',
};

/** Sets settings that the next sessions have. The embedded engine ignores those of a role or database. */
export async function setDefaults(database: TestDatabase, settings: Readonly<Record<string, string>>): Promise<void> {
  const { DATABASE_URL: url, DATA_DIR: directory = '' } = database.settings;
  const all = Object.entries(settings);
  if (url === undefined) {
    const lines = all.map(([name, value]) => `${name} = '${value}'\n`);
    return appendFile(join(directory, 'postgresql.conf'), lines.join(''));
  }
  const name = new URL(url).pathname.slice(1);
  const statements = all.map(([key, value]) => `ALTER DATABASE ${name} SET ${key} = ${pg.escapeLiteral(value)}`);
  // In one session, which has none of them yet.
  await administerTestDatabase(database, statements.join('; '));
}
