import pg from 'pg';
import type { QueryRunner } from 'typeorm';

/** A node of a plan. The actual figures are of an executed statement. */
export interface PlanNode {
  'Node Type': string;
  'Total Cost': number;
  'Index Name'?: string;
  Filter?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

/**
 * The nodes of a statement's plan. PostgreSQL plans with the values (`custom`) or without them (`generic`).
 *
 * @param analyze whether it executes the statement, too
 */
export async function planOf(
  session: QueryRunner,
  mode: 'custom' | 'generic',
  text: string,
  values: readonly (string | number)[],
  analyze = false,
): Promise<PlanNode[]> {
  await session.query(`SET plan_cache_mode = force_${mode}_plan`);
  await session.query(`PREPARE explained AS ${text}`);
  try {
    const literals = values.map((value) => (typeof value === 'number' ? value : pg.escapeLiteral(value)));
    const list = literals.length === 0 ? '' : `(${literals.join()})`;
    const query = `EXPLAIN (ANALYZE ${analyze}, FORMAT JSON) EXECUTE explained${list}`;
    const [row] = (await session.query(query)) as [{ 'QUERY PLAN': [{ Plan: PlanNode }] }];
    const nodes: PlanNode[] = [];
    for (const waiting = [row['QUERY PLAN'][0].Plan]; waiting.length > 0;) {
      const node = waiting.shift() as PlanNode;
      nodes.push(node);
      waiting.push(...(node.Plans ?? []));
    }
    return nodes;
  } finally {
    await session.query('DEALLOCATE explained');
    await session.query('RESET plan_cache_mode');
  }
}
