import type { DataSource } from 'typeorm';
import { StartupError } from '#runtime';
import type { Product } from '#settings';
import { EXACT } from '../statements.js';
import { migrationStatus, schemaFault } from './migration-history.js';

const ALL_RIGHTS = 'SELECT,INSERT,UPDATE,DELETE';

/** The tables of the platform, with the rights that its statements need. */
const PLATFORM_TABLES = {
  schema_migration: 'SELECT',
  client: 'SELECT,INSERT,UPDATE',
  api_key: 'SELECT,INSERT,UPDATE',
  key_usage: ALL_RIGHTS,
  idempotency_key: ALL_RIGHTS,
};

/** Those of `usedTables` that exist. By name: `to_regclass` fails for a schema that the role may not use. */
const USED = `json_to_recordset($1) AS used (own boolean, schema text, name text, rights text, id text, identity boolean)
  JOIN pg_class c ON relname = used.name AND relkind IN ('r', 'p', 'v', 'm', 'f') AND CASE WHEN used.schema IS NULL
    THEN pg_table_is_visible(c.oid) ELSE relnamespace::regnamespace::text = quote_ident(used.schema) END`;

const HIDDEN = `${EXACT}
  SELECT string_agg(DISTINCT c.oid::regclass::text, ', ') FILTER (WHERE own) AS own,
    string_agg(DISTINCT format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', c.oid::regclass), '; ') FILTER (WHERE own) AS remedy,
    string_agg(DISTINCT c.oid::regclass::text, ', ') FILTER (WHERE NOT own) AS others
  FROM ${USED} WHERE row_security_active(c.oid)`;

/**
 * `grants`: the missing GRANTs; a right on one column counts. `lost`: the remedy if an identity column is none any more. `behind`: a query that has
 * a row with the remedy if the sequence is behind. It reads the largest id first: later ids come from the sequence.
 */
const STATES = `${EXACT}
  SELECT own::text, concat_ws('; ',
      CASE WHEN NOT has_schema_privilege(relnamespace, 'USAGE')
        THEN format('GRANT USAGE ON SCHEMA %s TO %I', relnamespace::regnamespace, current_user) END,
      (SELECT format('GRANT %s ON %s TO %I', string_agg(needed, ', '), c.oid::regclass, current_user)
        FROM unnest(string_to_array(rights, ',')) needed
        WHERE NOT CASE needed WHEN 'DELETE' THEN has_table_privilege(c.oid, needed)
          ELSE has_any_column_privilege(c.oid, needed) END HAVING count(*) > 0),
      CASE WHEN NOT has_sequence_privilege(seqrelid, 'USAGE, UPDATE')
        THEN format('GRANT USAGE ON SEQUENCE %s TO %I', seqrelid::regclass, current_user) END) AS grants,
    CASE WHEN identity AND relkind IN ('r', 'p') AND attidentity = '' AND NOT atthasdef THEN format(
      'Column %2$I of %1$s generates no ids, because it is no identity column any more. As the owner, run: ALTER TABLE %1$s '
      'ALTER %2$I ADD GENERATED ALWAYS AS IDENTITY; SELECT setval(pg_get_serial_sequence(%1$L, %2$L), max(%2$I)) FROM %1$s.',
      c.oid::regclass, attname) END AS lost,
    CASE WHEN seqincrement > 0 THEN format(
      'SELECT %L AS warning FROM (SELECT max(%I) AS largest FROM %s) ids '
      'WHERE largest > coalesce(pg_sequence_last_value(%L::regclass), %s - 1)',
      format('Sequence %3$s is behind the ids of %2$s, unless another writer owns the higher ones. As the owner, run: '
        'SELECT setval(%3$L, max(%1$I)) FROM %2$s HAVING max(%1$I) >= (SELECT last_value FROM %3$s).',
        attname, c.oid::regclass, seqrelid::regclass),
      attname, c.oid::regclass, seqrelid::regclass, seqstart) END AS behind
  FROM ${USED}
  LEFT JOIN pg_attribute ON attrelid = c.oid AND attname = used.id
  LEFT JOIN LATERAL (
    SELECT pg_sequence.* FROM pg_depend JOIN pg_sequence ON seqrelid = objid
    WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND refobjid = c.oid AND refobjsubid = attnum
  ) sequence ON true
  ORDER BY c.oid::regclass::text`;

type State = Readonly<Record<'own' | 'grants', string> & Record<'lost' | 'behind', string | null>>;

/** Why the service must not run on the database as it is, and what its operator should look at. */
export interface Findings {
  readonly fault: StartupError | undefined;
  readonly warnings: readonly string[];
}

/** Whether row level security is active for the role: on tables of the platform it is a fault, on others it may be meant. */
export async function hiddenRows(dataSource: DataSource): Promise<Findings> {
  const [{ own, remedy, others }] = await dataSource.query<[Record<'own' | 'remedy' | 'others', string | null>]>(
    HIDDEN,
    [usedTables(dataSource)],
  );
  const text = 'Row level security may hide rows from the service in';
  return {
    fault: own === null ? undefined : new StartupError(`${text} ${own}. As their owner, run: ${remedy}.`),
    warnings: others === null ? [] : [`${text} ${others}. If that is not meant, disable it for these tables.`],
  };
}

/**
 * Looks at the schema, at row level security, at the rights of the role, and at the ids that will be generated. Missing rights on tables
 * of modules, and sequences behind the largest id, may be meant.
 */
export async function findingsOf(dataSource: DataSource, product: Product): Promise<Findings> {
  const { fault, warnings } = await hiddenRows(dataSource);
  const states = await dataSource.query<State[]>(STATES, [usedTables(dataSource)]);
  const [ownGrants, grants] = ['true', 'false'].map((own) =>
    [...new Set(states.flatMap((state) => (state.own === own && state.grants !== '' ? state.grants : [])))].join('; '),
  );
  const lacks = 'The role of the service lacks rights. As the owner, run:';
  const lost = states.flatMap((state) => state.lost ?? []);
  const behind = states.flatMap((state) => (state.grants === '' && state.behind) || []);
  const faultOf = (text: string | undefined): StartupError | undefined => (text ? new StartupError(text) : undefined);
  // Where no index has the ids, it reads the table. To take too long is no reason against a start.
  const sequences =
    behind.length === 0
      ? []
      : await dataSource.query<{ warning: string }[]>(EXACT + behind.join(' UNION ALL ')).catch(() => []);
  return {
    // A pending migration may make an identity column.
    fault:
      fault ??
      faultOf(ownGrants && `${lacks} ${ownGrants}.`) ??
      schemaFault(await migrationStatus(dataSource), product) ??
      faultOf(lost.join(' ')),
    warnings: [...warnings, ...(grants ? [`${lacks} ${grants}.`] : []), ...sequences.map(({ warning }) => warning)],
  };
}

function usedTables({ entityMetadatas }: DataSource): string {
  const own = Object.entries(PLATFORM_TABLES).map(([name, rights]) => ({ own: true, name, rights }));
  const others = entityMetadatas.map(({ schema, tableName: name, tableType, primaryColumns: [first, second] }) => {
    const id = second === undefined && first?.isGenerated && first.generationStrategy !== 'uuid' ? first : undefined;
    const identity = (id?.generationStrategy as string | undefined) === 'identity';
    const rights = tableType === 'view' ? 'SELECT' : ALL_RIGHTS;
    return { own: false, schema, name, rights, id: id?.databaseName, identity };
  });
  return JSON.stringify([...own, ...others]);
}
