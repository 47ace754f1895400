import type { QueryRunner } from 'typeorm';

/** `QueryRunner.query`. */
export type Query = (text: string, ...others: unknown[]) => Promise<unknown>;

/**
 * Replaces `query` of a query runner. The other methods of TypeORM's query runner use it, too.
 *
 * @param replacement makes the new function from the original one
 * @returns a function that restores the original
 */
export function replaceQuery(queryRunner: QueryRunner, replacement: (original: Query) => Query): () => void {
  const replaceable = queryRunner as { query: Query };
  const { query } = replaceable;
  replaceable.query = replacement(query.bind(queryRunner));
  return () => {
    replaceable.query = query;
  };
}
