import { Injectable } from '@nestjs/common';
import { DataSource, type EntitySchema, QueryFailedError } from 'typeorm';
import { ApiError, DeclaredErrors, type ErrorDefinition } from '#errors';
import { Database, type Statement } from '#postgres';

/** The errors of the two sides of a foreign key. */
export interface ForeignKeyErrors {
  /** A row was to refer to one that does not exist. */
  readonly missing?: ErrorDefinition;
  /** A row was to be deleted, or to get another key, while others refer to it. */
  readonly referenced?: ErrorDefinition;
}

/** An entity; or the name of a table that has none, such as that of `@ManyToMany`. */
export type ConstrainedTable = (abstract new (...values: never[]) => object) | EntitySchema | string;

type ConstraintErrorsByName = Readonly<Record<string, ErrorDefinition | ForeignKeyErrors>>;

const definitions: (readonly [table: ConstrainedTable, errors: ConstraintErrorsByName])[] = [];

/**
 * Says which error a request gets for a constraint or unique index that a row of the table violates. It holds for every statement:
 * of TypeORM, of `SharedRepository`, `Database` and `Idempotency`, and for a COMMIT. Operations list the errors by `@FailsWith`.
 *
 * A violation without an error is a 500. A service or filter that catches TypeORM's QueryFailedError comes first: around the whole
 * transaction, because a deferred constraint fails at its COMMIT. `driverError.constraint` is the name, on both engines.
 *
 * A violation of a partition counts as that of its partitioned table.
 *
 * @example defineConstraintErrors(ToyEntity, { uq_toy_name: TOY_EXISTS, fk_toy_box: { missing: NO_BOX, referenced: BOX_HAS_TOYS } });
 * @param errors by the name of the constraint. A foreign key that has one error has it for rows that refer to none
 */
export function defineConstraintErrors(table: ConstrainedTable, errors: ConstraintErrorsByName): void {
  definitions.push([table, errors]);
}

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

/** A name in a message of PostgreSQL, in every language. */
const QUOTED = /["»«„“][^"»«„“”]+["»«“”]/g;

/**
 * Whether a row is still referred to. Both sides of a foreign key have the code 23503 and all other fields in common; only the
 * message of this side names two tables besides the constraint. RESTRICT has a code of its own from PostgreSQL 18 on.
 */
export function isReferenced({ code, message }: { readonly code?: string; readonly message: string }): boolean {
  return code === '23001' || (code === '23503' && (message.match(QUOTED)?.length ?? 0) > 2);
}

type Names = readonly [schema: string, table: string, constraint: string];

/** The errors that features have defined for constraints, for the requests that violate them. */
@Injectable()
export class ConstraintErrors extends DeclaredErrors {
  constructor(
    private readonly dataSource: DataSource,
    private readonly database: Database,
  ) {
    super();
  }

  override errorOf(thrown: unknown): Promise<ApiError | undefined> | undefined {
    if (definitions.length === 0 || !(thrown instanceof QueryFailedError)) return undefined;
    const violation = thrown.driverError as Error & Partial<Record<'code' | 'schema' | 'table' | 'constraint', string>>;
    const { schema, table, constraint } = violation;
    if (schema === undefined || table === undefined || constraint === undefined) return undefined;
    const names = [schema, table, constraint] as const;
    return this.errorsOf(names).then((errors) => {
      const error = isReferenced(violation) ? errors?.referenced : errors?.missing;
      return error && new ApiError(error, error.message, {}, { cause: thrown });
    });
  }

  /** Never rejects. */
  private async errorsOf(names: Names): Promise<ForeignKeyErrors | undefined> {
    const errors = this.definedFor(names);
    if (errors !== undefined) return errors;
    const [root] = await this.database.read<[...Names]>(OF_PARTITION, [...names]).catch(() => []);
    return root && this.definedFor(root);
  }

  private definedFor([schema, table, constraint]: Names): ForeignKeyErrors | undefined {
    const paths = [table, `${schema}.${table}`];
    const defined = definitions.find(([of, errors]) => constraint in errors && paths.includes(this.pathOf(of)));
    const errors = defined?.[1][constraint];
    return errors && 'code' in errors ? { missing: errors } : errors;
  }

  /** The name of a table, with its schema if the entity has one; empty for an entity of another application. */
  private pathOf(table: ConstrainedTable): string {
    if (typeof table === 'string') return table;
    return this.dataSource.hasMetadata(table) ? this.dataSource.getMetadata(table).tablePath : '';
  }
}
