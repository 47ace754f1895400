import type { ClientBase } from 'pg';
import { executeQuery } from '../statements.js';
import { UnusableDatabase } from './connection-errors.js';

/**
 * Settings without which pg sends or reads other values than modules expect: its parsers take a date that is not of DateStyle ISO
 * for null, it decodes UTF-8, and it writes null into an array as NULL. ISO leaves the order of day and month as it is.
 */
const WANTED = { datestyle: 'ISO', client_encoding: 'UTF8', array_nulls: 'on' };

const REMEDY = `format('ALTER ROLE %I IN DATABASE %I SET ', session_user, current_database())`;

/**
 * Prepares a new session, in one statement. One of its own gets the settings of WANTED and `limits`. In one that a pooler shares,
 * where a setting would reach other clients, those of WANTED must be in force already.
 *
 * @param limits settings of PostgreSQL in ms
 * @throws UnusableDatabase when a setting of a shared session is another, or the encoding of the database is not UTF8
 */
export async function prepareSession(
  client: ClientBase,
  isOwnSession: boolean,
  limits: Readonly<Record<string, number>> = {},
): Promise<void> {
  const wanted = Object.entries(WANTED);
  const set = ([name, value]: [string, string | number]): string => `set_config('${name}', '${value}', false)`;
  const settings = isOwnSession ? wanted.map(set) : wanted.map(([name]) => `current_setting('${name}')`);
  const columns = [REMEDY, 'current_database()::text', `current_setting('server_encoding')`, ...settings];
  const text = `SELECT ${[...columns, ...(isOwnSession ? Object.entries(limits).map(set) : [])].join()}`;
  const [row] = await executeQuery<[string, string, string, ...string[]]>(client, { name: '', text }, []);
  const [remedy, database, encoding, ...values] = row as [string, string, string, ...string[]];
  if (encoding !== 'UTF8') {
    throw new UnusableDatabase(
      `the database '${database}' has the encoding ${encoding}, which cannot store every text. ` +
        `Make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and move the data by pg_dump and psql.`,
    );
  }
  for (const [index, [name, value]] of wanted.entries()) {
    const found = values[index] as string;
    // Of DateStyle, what follows the comma is the order.
    const [style, order] = found.split(', ');
    if (style === value) continue;
    throw new UnusableDatabase(
      `${name} is '${found}', and the sessions of a pooler cannot be set one by one. ` +
        `Run: ${remedy}${name} TO '${[value, order].filter(Boolean).join(', ')}'; then let the pooler reconnect.`,
    );
  }
}
