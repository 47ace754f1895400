/** Shared by all peers, so that they differ only in the server. */

/** Settings that the benchmark passes to every server. */
export const DATABASE_URL = process.env['DATABASE_URL'] ?? '';
export const PORT = Number(process.env['PORT']);
export const API_KEY = process.env['BOOTSTRAP_API_KEY'] ?? '';
export const POOL_SIZE = Number(process.env['DATABASE_POOL_SIZE'] ?? 10);

/** Longer than the turns of all other servers, so that no turn starts with connecting. */
export const IDLE_TIMEOUT_MS = 600_000;

export interface PetRow {
  id: string;
  name: string;
  category_id: string;
  status: string;
}

export const STATUSES = ['available', 'pending', 'sold'];

export const COLUMNS = 'id, name, category_id, status';

/** Exact up to 2^53 only, unlike this service. The rows of the benchmark stay below, which favours the peers. */
export function toPet(row: PetRow): object {
  return { id: Number(row.id), name: row.name, categoryId: Number(row.category_id), status: row.status };
}

/** The usual statement for a page. One row more than the page shows whether there is a next page. */
export function listStatement(limit: number, status: string | undefined, after: string | undefined) {
  const values: unknown[] = [limit + 1];
  const conditions: string[] = [];
  if (status !== undefined) conditions.push(`status = $${values.push(status)}`);
  if (after !== undefined) conditions.push(`id > $${values.push(after)}`);
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
  const name = `list${status === undefined ? '' : '_status'}${after === undefined ? '' : '_after'}`;
  return { name, text: `SELECT ${COLUMNS} FROM pet ${where} ORDER BY id LIMIT $1`, values };
}

export const GET_STATEMENT = { name: 'get', text: `SELECT ${COLUMNS} FROM pet WHERE id = $1` };

export const CREATE_STATEMENT = {
  name: 'create',
  text: `INSERT INTO pet (name, category_id, status) VALUES ($1, $2, $3) RETURNING ${COLUMNS}`,
};
