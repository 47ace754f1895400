import type { QueryRunner } from 'typeorm';

/** `QueryRunner.query`. */
export type Query = (text: string, ...others: unknown[]) => Promise<unknown>;

/**
 * Replaces `query` of a query runner. The other methods of TypeORM's query runner send their statements through it, too.
 *
 * @param replacement gets the original
 * @returns puts the original back
 */
export function replaceQuery(queryRunner: QueryRunner, replacement: (original: Query) => Query): () => void {
  const replaceable = queryRunner as { query: Query };
  const { query } = replaceable;
  replaceable.query = replacement(query.bind(queryRunner));
  return () => {
    replaceable.query = query;
  };
}
