-- Functions of the session, which partition.sql and ahead.sql share.
\set ON_ERROR_STOP on
\set QUIET on
\pset tuples_only on
SET lock_timeout = '500ms';
SET datestyle = 'ISO';

-- Runs a statement. If it waits for a lock longer than 0.5 s, it gives all of its locks back for 0.5 s, in which the requests are served
-- that have queued behind it. The callers repeat that up to 120 times; once the statement has run or failed, the rest does nothing.
-- 0.5 s is shorter than deadlock_timeout, so that a deadlock ends this statement and no request.
CREATE PROCEDURE pg_temp.attempt(number int, statement text) LANGUAGE plpgsql AS $$
DECLARE
  started timestamptz := clock_timestamp();
BEGIN
  IF statement = current_setting('partitioning.done', true) THEN RETURN; END IF;
  EXECUTE statement;
  PERFORM set_config('partitioning.done', statement, false);
  RAISE NOTICE '% took % ms.', statement, round(extract(epoch FROM clock_timestamp() - started) * 1000);
EXCEPTION
  WHEN lock_not_available OR deadlock_detected THEN
    PERFORM pg_sleep(0.5);
    IF number = 120 THEN PERFORM set_config('partitioning.failure',
      'no lock in 120 attempts. A long transaction holds it, such as a backup: pg_stat_activity shows it. Run this again then', false);
    END IF;
  WHEN query_canceled OR OTHERS THEN
    PERFORM set_config('partitioning.done', statement, false), set_config('partitioning.failure', SQLERRM, false);
END $$;

-- Ends the file if an attempt has failed, without the constraint that promise_bound has made.
CREATE PROCEDURE pg_temp.stop_if_failed(t regclass) LANGUAGE plpgsql AS $$
DECLARE
  failure text := current_setting('partitioning.failure', true);
BEGIN
  IF coalesce(failure, '') = '' THEN RETURN; END IF;
  SET lock_timeout = 0;
  PERFORM pg_temp.forget_bound(t);
  COMMIT;
  RAISE EXCEPTION '% is not changed: %.', t, failure;
END $$;

-- A bound above all values and, of days, above today (UTC), with room for some more partitions. Numbers: a multiple of the size.
CREATE FUNCTION pg_temp.bound_above(t regclass, col text, size bigint, more bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  last text;
BEGIN
  EXECUTE format('SELECT max(%I) FROM %s', col, t) INTO last;
  IF (SELECT atttypid FROM pg_attribute WHERE attrelid = t AND attname = col) = 'date'::regtype THEN
    RETURN greatest(last::date, (now() AT TIME ZONE 'UTC')::date) + 1 + (more * size)::int;
  END IF;
  RETURN (coalesce(last::bigint, 0) / size + 1 + more) * size;
END $$;

-- Until the table is attached with this bound, a constraint refuses other rows. Once it is validated, it proves to ATTACH that there
-- are none, which else reads all rows while requests wait.
CREATE FUNCTION pg_temp.promise_bound(t regclass, col text, bound text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_temp.forget_bound(t);
  EXECUTE format('ALTER TABLE %s ADD CONSTRAINT ck_bound CHECK (%I < %L) NOT VALID', t, col, bound);
END $$;

CREATE FUNCTION pg_temp.forget_bound(t regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM pg_constraint WHERE conrelid = t AND conname = 'ck_bound') THEN
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT ck_bound', t);
  END IF;
END $$;

-- Makes a partition with the storage parameters of another one; a partitioned table has none.
CREATE FUNCTION pg_temp.make_partition(parent text, partition text, bounds text, pattern regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING IDENTITY) %s', partition, parent,
    (SELECT 'WITH (' || array_to_string(reloptions, ', ') || ')' FROM pg_class WHERE oid = pattern));
  EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES %s', parent, partition, bounds);
END $$;

-- Runs a statement that replaces a table or a part of it, while no foreign key refers to it. All of them hold again before a request
-- can change a row; the rows that were there are checked by validate.sql.
CREATE FUNCTION pg_temp.without_references(t regclass, statement text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  one text;
  drops text[];
  additions text[];
BEGIN
  -- Locks in the order in which requests take them: first the tables that refer to it.
  FOR one IN SELECT format('LOCK TABLE %s', c::regclass) FROM (
      SELECT 1, conrelid FROM pg_constraint WHERE confrelid = t AND contype = 'f' UNION SELECT 2, t
      UNION SELECT 3, confrelid FROM pg_constraint WHERE conrelid = t AND contype = 'f') AS locked (place, c)
    ORDER BY place, c
  LOOP EXECUTE one; END LOOP;
  SELECT array_agg(format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)),
    array_agg(format('ALTER TABLE %s ADD CONSTRAINT %I %s%s', conrelid::regclass, conname, pg_get_constraintdef(oid),
      CASE WHEN convalidated THEN ' NOT VALID' END))
    INTO drops, additions FROM pg_constraint WHERE confrelid = t AND contype = 'f' AND conparentid = 0;
  FOREACH one IN ARRAY coalesce(drops, '{}') || statement || additions LOOP EXECUTE one; END LOOP;
END $$;
