import { Injectable } from '@nestjs/common';
import { DataSource, type EntitySchema, QueryFailedError } from 'typeorm';
import { ApiError, DeclaredErrors, type ErrorDefinition } from '#errors';

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
 * Of a partition, PostgreSQL reports its own name and those of its indexes: define the errors for its name, too.
 *
 * @example defineConstraintErrors(ToyEntity, { uq_toy_name: TOY_EXISTS, fk_toy_box: { missing: NO_BOX, referenced: BOX_HAS_TOYS } });
 * @param errors by the name of the constraint. A foreign key that has one error has it for rows that refer to none
 */
export function defineConstraintErrors(table: ConstrainedTable, errors: ConstraintErrorsByName): void {
  definitions.push([table, errors]);
}

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
export class ConstraintErrors extends DeclaredErrors {
  constructor(private readonly dataSource: DataSource) {
    super();
  }

  override errorOf(thrown: unknown): ApiError | undefined {
    if (!(thrown instanceof QueryFailedError)) return undefined;
    const violation = thrown.driverError as Error & Partial<Record<'code' | 'schema' | 'table' | 'constraint', string>>;
    const { schema, table, constraint } = violation;
    if (table === undefined || constraint === undefined) return undefined;
    const paths = [table, `${schema}.${table}`];
    const defined = definitions.find(([of, errors]) => constraint in errors && paths.includes(this.pathOf(of)));
    const found = defined?.[1][constraint];
    if (found === undefined) return undefined;
    const { missing, referenced } = 'code' in found ? { missing: found, referenced: undefined } : found;
    const error = isReferenced(violation) ? referenced : missing;
    return error && new ApiError(error, error.message, {}, { cause: thrown });
  }

  /** The name of a table, with its schema if the entity has one; empty for an entity of another application. */
  private pathOf(table: ConstrainedTable): string {
    if (typeof table === 'string') return table;
    return this.dataSource.hasMetadata(table) ? this.dataSource.getMetadata(table).tablePath : '';
  }
}
