import { administer } from './postgresql-database.js';
import type { TestDatabase } from './database.js';

/**
 * Puts partitioned tables in the place of empty ones: `pet` by range of its id, three to a partition; `key_usage` by day;
 * `idempotency_key` by hash. What no partition takes is in a DEFAULT one.
 */
export async function partitionTables({ ownerSettings }: TestDatabase): Promise<void> {
  await administer(
    ownerSettings.DATABASE_URL ?? '',
    `
    ALTER TABLE pet RENAME TO pet_before;
    ALTER TABLE pet_before ALTER id DROP IDENTITY, DROP CONSTRAINT pk_pet;
    DROP INDEX ix_pet_status_id;
    CREATE TABLE pet (LIKE pet_before INCLUDING ALL) PARTITION BY RANGE (id);
    ALTER TABLE pet ADD CONSTRAINT pk_pet PRIMARY KEY (id), ALTER id ADD GENERATED ALWAYS AS IDENTITY;
    CREATE INDEX ix_pet_status_id ON pet (status, id);
    DROP TABLE pet_before;
    CREATE TABLE pet_0 PARTITION OF pet FOR VALUES FROM (0) TO (3);
    CREATE TABLE pet_1 PARTITION OF pet FOR VALUES FROM (3) TO (6);
    CREATE TABLE pet_2 PARTITION OF pet FOR VALUES FROM (6) TO (9);
    CREATE TABLE pet_3 PARTITION OF pet FOR VALUES FROM (9) TO (12);
    CREATE TABLE pet_default PARTITION OF pet DEFAULT;

    ALTER TABLE key_usage RENAME TO key_usage_before;
    ALTER TABLE key_usage_before DROP CONSTRAINT pk_key_usage;
    DROP INDEX ix_key_usage_day_operation;
    CREATE TABLE key_usage (LIKE key_usage_before INCLUDING ALL) PARTITION BY RANGE (day);
    ALTER TABLE key_usage ADD CONSTRAINT pk_key_usage PRIMARY KEY (key_id, day, operation),
      ADD CONSTRAINT fk_key_usage_key FOREIGN KEY (key_id) REFERENCES api_key;
    CREATE INDEX ix_key_usage_day_operation ON key_usage (day, operation);
    DROP TABLE key_usage_before;
    DO $$ BEGIN
      FOR n IN 0 .. 2 LOOP
        EXECUTE format('CREATE TABLE key_usage_%s PARTITION OF key_usage FOR VALUES FROM (%L) TO (%L)',
          n, current_date + n - 1, current_date + n);
      END LOOP;
    END $$;
    CREATE TABLE key_usage_default PARTITION OF key_usage DEFAULT;

    ALTER TABLE idempotency_key RENAME TO idempotency_key_before;
    ALTER TABLE idempotency_key_before DROP CONSTRAINT pk_idempotency_key;
    DROP INDEX ix_idempotency_key_created_at;
    CREATE TABLE idempotency_key (LIKE idempotency_key_before INCLUDING ALL) PARTITION BY HASH (client_id);
    ALTER TABLE idempotency_key ADD CONSTRAINT pk_idempotency_key PRIMARY KEY (client_id, key);
    CREATE INDEX ix_idempotency_key_created_at ON idempotency_key (created_at);
    DROP TABLE idempotency_key_before;
    CREATE TABLE idempotency_key_0 PARTITION OF idempotency_key FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE idempotency_key_1 PARTITION OF idempotency_key FOR VALUES WITH (MODULUS 2, REMAINDER 1);
    `,
  );
}
