import type { MigrationInterface, QueryRunner } from 'typeorm';

export class LeaveRoomForUpdatesOfWholePages1795356000000 implements MigrationInterface {
  readonly backwardCompatible = true;

  async up(queryRunner: QueryRunner): Promise<void> {
    // One write of usage updates a thousand rows, so all rows of many pages at once. Each page must have room for all of
    // its rows a second time; then no update writes an index (HOT), and the table stays at this size.
    await queryRunner.query(`ALTER TABLE key_usage SET (fillfactor = 45)`);
    await queryRunner.query(`ALTER TABLE api_key SET (fillfactor = 45)`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE api_key SET (fillfactor = 70)`);
    await queryRunner.query(`ALTER TABLE key_usage SET (fillfactor = 70)`);
  }
}
