import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { DataSource, type EntitySchema, QueryFailedError } from 'typeorm';
import { ApiError, DeclaredErrors, type ErrorDefinition } from '#errors';
import { Database, type Statement } from '#postgres';
import { nearestName } from '#settings';

/** The errors of a foreign key, whose two sides are violated by different requests. */
export interface ForeignKeyErrors {
  /** A row was to refer to one that does not exist. */
  readonly missing?: ErrorDefinition;
  /** A row was to be deleted, or to get another key, while others refer to it. */
  readonly referenced?: ErrorDefinition;
}

/** An entity; or the name of a table that has none, such as that of `@ManyToMany`. */
export type ConstrainedTable = (abstract new (...values: never[]) => object) | EntitySchema | string;

/** By table: its constraints and unique indices by name, and the errors of their violations. */
const definitions = new Map<ConstrainedTable, Map<string, ForeignKeyErrors>>();

/**
 * Says which error a request gets for a constraint or unique index that a row of the table violates. It holds for every statement:
 * of TypeORM, of `SharedRepository`, `Database` and `Idempotency`, and for a COMMIT. Operations list the errors by `@FailsWith`.
 *
 * A violation without an error is a 500. A service or filter that catches TypeORM's QueryFailedError comes first: around the whole
 * transaction, because a deferred constraint fails at its COMMIT. `driverError.constraint` is the name, on both engines.
 *
 * At start, the log warns of names that the table does not have. A violation of a partition counts as that of its partitioned table.
 *
 * @example defineConstraintErrors(ToyEntity, { uq_toy_name: TOY_EXISTS, fk_toy_box: { missing: NO_BOX, referenced: BOX_HAS_TOYS } });
 * @param errors by the name of the constraint. A foreign key that has one error has it for rows that refer to none
 * @throws Error at import time when a constraint of the table has an error already
 */
export function defineConstraintErrors(
  table: ConstrainedTable,
  errors: Readonly<Record<string, ErrorDefinition | ForeignKeyErrors>>,
): void {
  const known = definitions.get(table) ?? new Map<string, ForeignKeyErrors>();
  definitions.set(table, known);
  for (const [name, error] of Object.entries(errors)) {
    if (known.has(name)) throw new Error(`The errors of the constraint '${name}' are defined twice.`);
    known.set(name, 'code' in error ? { missing: error } : error);
  }
}

/** The tables at these paths, and the names of their constraints and unique indices as JSON. */
const TABLES: Statement = {
  name: '',
  text: `SELECT path, nspname::text, found.relname::text, (
      SELECT coalesce(json_agg(name), '[]')::text FROM (
        SELECT conname AS name FROM pg_constraint WHERE conrelid = found.oid
        UNION
        SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = found.oid AND indisunique
      ) AS names
    )
    FROM unnest($1::text[]) AS path
    JOIN pg_class AS found ON found.oid = to_regclass(path)
    JOIN pg_namespace ON pg_namespace.oid = relnamespace`,
};

/**
 * The partitioned table, and its constraint or index, of which a partition has another one. Each partition has indices with names
 * of their own; its foreign keys may have some, checks never.
 */
const OF_PARTITION: Statement = {
  name: '',
  text: `WITH RECURSIVE parents AS (
      SELECT conname, conparentid, conrelid FROM pg_constraint
        WHERE conname = $3 AND conrelid = to_regclass(format('%I.%I', $1::text, $2::text))
      UNION ALL
      SELECT parent.conname, parent.conparentid, parent.conrelid FROM parents
        JOIN pg_constraint AS parent ON parent.oid = parents.conparentid
    ), roots AS (
      SELECT coalesce(pg_partition_root(conrelid), conrelid) AS root, conname FROM parents WHERE conparentid = 0
      UNION ALL
      SELECT indrelid, relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE indexrelid = pg_partition_root(to_regclass(format('%I.%I', $1::text, $3::text)))
    )
    SELECT nspname::text, relname::text, conname::text FROM roots
      JOIN pg_class ON pg_class.oid = root JOIN pg_namespace ON pg_namespace.oid = relnamespace LIMIT 1`,
};

/** Most constraints of partitions that are remembered. */
const MAX_PARTITIONS = 1_000;

/** A name in a message of PostgreSQL, in every language. */
const QUOTED = /["»«„“][^"»«„“”]+["»«“”]/g;

/**
 * Whether a row is still referred to. Both sides of a foreign key have the code 23503 and all other fields in common; only the
 * message of this side names two tables besides the constraint. RESTRICT has a code of its own from PostgreSQL 18 on.
 */
export function isReferenced({ code, message }: { readonly code?: string; readonly message: string }): boolean {
  return code === '23001' || (code === '23503' && (message.match(QUOTED)?.length ?? 0) > 2);
}

/** The errors that features have defined for constraints, for the requests that violate them. */
@Injectable()
export class ConstraintErrors extends DeclaredErrors implements OnModuleInit {
  private readonly logger = new Logger(ConstraintErrors.name);
  private readonly errors = new Map<string, ForeignKeyErrors>();
  private readonly ofPartitions = new Map<string, Promise<ForeignKeyErrors | undefined>>();

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: Database,
  ) {
    super();
  }

  async onModuleInit(): Promise<void> {
    const tables = [...definitions].flatMap(([table, errors]) => {
      const path = this.pathOf(table);
      return path === undefined ? [] : [{ path, errors }];
    });
    if (tables.length === 0) return;
    const paths = tables.map(({ path }) => path);
    const found = await this.database.read<[path: string, schema: string, table: string, names: string]>(TABLES, [
      paths,
    ]);
    for (const { path, errors } of tables) {
      const [, schema, table, names = '[]'] = found.find(([one]) => one === path) ?? [];
      const known = JSON.parse(names) as string[];
      for (const [name, error] of errors) {
        this.errors.set(keyOf(schema, table, name), error);
        if (known.includes(name)) continue;
        const nearest = nearestName(name, known);
        const advice = nearest === undefined ? '' : `; did you mean ${nearest}?`;
        this.logger.warn(
          `The table ${path} has no constraint or unique index ${name}, for which errors are defined${advice}`,
        );
      }
    }
  }

  /** The path of a table for PostgreSQL; undefined for an entity of another application. */
  private pathOf(table: ConstrainedTable): string | undefined {
    const { dataSource } = this;
    if (typeof table !== 'string' && !dataSource.hasMetadata(table)) return undefined;
    const path = typeof table === 'string' ? table : dataSource.getMetadata(table).tablePath;
    return path
      .split('.')
      .map((part) => dataSource.driver.escape(part))
      .join('.');
  }

  override errorOf(thrown: unknown): Promise<ApiError | undefined> | undefined {
    if (this.errors.size === 0 || !(thrown instanceof QueryFailedError)) return undefined;
    const violation = thrown.driverError as Error & Partial<Record<'code' | 'schema' | 'table' | 'constraint', string>>;
    const { schema, table, constraint } = violation;
    if (schema === undefined || table === undefined || constraint === undefined) return undefined;
    return this.errorsOf(schema, table, constraint).then((errors) => {
      const error = isReferenced(violation) ? errors?.referenced : errors?.missing;
      return error && new ApiError(error, error.message, {}, { cause: thrown });
    });
  }

  /** Never rejects. */
  private errorsOf(schema: string, table: string, constraint: string): Promise<ForeignKeyErrors | undefined> {
    const key = keyOf(schema, table, constraint);
    const errors = this.errors.get(key);
    if (errors !== undefined) return Promise.resolve(errors);
    let found = this.ofPartitions.get(key);
    if (found === undefined) {
      if (this.ofPartitions.size >= MAX_PARTITIONS) this.ofPartitions.clear();
      found = this.database.read<[string, string, string]>(OF_PARTITION, [schema, table, constraint]).then(
        ([root]) => root && this.errors.get(keyOf(...root)),
        () => void this.ofPartitions.delete(key),
      );
      this.ofPartitions.set(key, found);
    }
    return found;
  }
}

function keyOf(...names: (string | undefined)[]): string {
  return JSON.stringify(names);
}
