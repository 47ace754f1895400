import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CompareClientNamesAsBytes1795824060000 implements MigrationInterface {
  readonly backwardCompatible = true;

  // Only the unique index is made anew. Where an update of the operating system has changed the collation of the database, the old
  // index may have let a name in twice.
  async up(queryRunner: QueryRunner): Promise<void> {
    const doubled = (await queryRunner.query(
      `SELECT string_agg(id::text, ', ' ORDER BY id) AS ids FROM client GROUP BY name COLLATE "C" HAVING count(*) > 1`,
    )) as { ids: string }[];
    if (doubled.length > 0) {
      throw new Error(
        `the clients with the ids ${doubled.map(({ ids }) => ids).join(' and ')} have the same name. Rename all but one, ` +
          `such as by UPDATE client SET name = name || ' (old)' WHERE id = …, and run migrate again.`,
      );
    }
    await queryRunner.query(`ALTER TABLE client ALTER name TYPE text COLLATE "C"`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE client ALTER name TYPE text COLLATE "default"`);
  }
}
