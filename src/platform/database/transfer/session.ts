import type { PoolClient, QueryArrayConfig, QueryArrayResult } from 'pg';
import type { QueryRunner } from 'typeorm';
import { asUnavailable } from '../connections/connection-errors.js';
import type { Run } from './database-contents.js';

/** Leaves every value as PostgreSQL's text. */
const AS_TEXT = { getTypeParser: () => (text: string) => text };

/**
 * Runs statements on the connection of a query runner, without TypeORM's conversions and without a time limit. If a text has
 * several statements, the rows of the last one are returned.
 *
 * @throws ApiError UNAVAILABLE when the connection breaks; any other error of pg
 */
export async function runOn(queryRunner: QueryRunner): Promise<Run> {
  const client = await clientOf(queryRunner);
  return async (text) => {
    const query = { text, rowMode: 'array', types: AS_TEXT } as QueryArrayConfig;
    const result = await answerOf(client.query<(string | null)[]>(query));
    // For several statements pg returns an array of results, which its types do not declare.
    const last = Array.isArray(result) ? (result.at(-1) as QueryArrayResult<(string | null)[]>) : result;
    return last.rows;
  };
}

export async function clientOf(queryRunner: QueryRunner): Promise<PoolClient> {
  return (await queryRunner.connect()) as PoolClient;
}

/**
 * The answer to a statement.
 *
 * @throws ApiError UNAVAILABLE when the connection breaks; any other error of pg
 */
export async function answerOf<Result>(answer: Promise<Result>): Promise<Result> {
  try {
    return await answer;
  } catch (error) {
    throw asUnavailable(error);
  }
}
