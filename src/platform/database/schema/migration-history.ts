import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';

/** A migration of this version. */
export interface KnownMigration {
  readonly name: string;
  /** Unix time in ms. */
  readonly timestamp: number;
  readonly migration: MigrationInterface;
}

/** A migration of this version, of the database, or of both. */
export interface MigrationStatus {
  readonly name: string;
  /** When it was applied; undefined while it is pending. */
  readonly appliedAt: Date | undefined;
  /** False for a migration that another version has applied. */
  readonly isKnown: boolean;
}

/** Every migration of this version and of the database, oldest first. */
export async function migrationStatus(dataSource: DataSource): Promise<MigrationStatus[]> {
  const queryRunner = dataSource.createQueryRunner('master');
  try {
    const applied = await appliedMigrations(queryRunner);
    const known = knownMigrations(dataSource).map(({ name }) => name);
    const unknown = [...applied.keys()].filter((name) => !known.includes(name));
    return [...known, ...unknown]
      .sort((a, b) => timestampOf(a) - timestampOf(b))
      .map((name) => ({ name, appliedAt: applied.get(name), isKnown: known.includes(name) }));
  } finally {
    await queryRunner.release();
  }
}

/** The migrations of this version, oldest first. */
export function knownMigrations(dataSource: DataSource): KnownMigration[] {
  return dataSource.migrations
    .map((migration) => {
      const name = migration.name ?? migration.constructor.name;
      return { name, timestamp: timestampOf(name), migration };
    })
    .sort((a, b) => a.timestamp - b.timestamp);
}

/** Names of the applied migrations and when each was applied, in the order in which they were. */
export async function appliedMigrations(queryRunner: QueryRunner): Promise<Map<string, Date>> {
  const exists = `SELECT to_regclass('schema_migration') IS NOT NULL AS exists`;
  const [{ exists: hasTable }] = (await queryRunner.query(exists)) as [{ exists: boolean }];
  if (!hasTable) return new Map();
  const rows = (await queryRunner.query('SELECT name, applied_at FROM schema_migration ORDER BY id')) as {
    name: string;
    applied_at: Date;
  }[];
  return new Map(rows.map((row) => [row.name, row.applied_at]));
}

/** TypeORM requires that a migration's name ends with its Unix time in ms, 13 digits. */
function timestampOf(name: string): number {
  return Number(name.slice(-13));
}
