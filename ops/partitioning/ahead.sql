-- Makes the next partitions of a table that partition.sql has partitioned by range, and drops those of expired days. As the owner of
-- the schema, once a day, by cron:
--
--   psql -X "$OWNER_URL" -v table=pet -v size=10000000 -v ahead=2 -f ahead.sql
--   psql -X "$OWNER_URL" -v table=key_usage -v size=7 -v ahead=2 -v keep=400 -f ahead.sql
--
-- table  its name as the owner's search_path finds it
-- size   numbers or days of a new partition
-- ahead  number of partitions beyond that of the largest value, or of today (UTC)
-- keep   number of days that are kept, today included; without it nothing is dropped
\ir functions.sql
\if :{?keep} \else \set keep 0 \endif

SELECT EXISTS (SELECT 1 FROM pg_partitioned_table WHERE partrelid = :'table'::regclass AND partstrat = 'r') AS by_range \gset
\if :by_range \else
  DO $$ BEGIN RAISE EXCEPTION 'The table is not partitioned by range: see partition.sql.'; END $$;
\endif
SELECT attname AS column, format('%s.%I', relnamespace::regnamespace, relname || '_rest') AS rest,
  atttypid::regtype AS type, CASE atttypid WHEN 'date'::regtype THEN 'int' ELSE 'bigint' END AS number
FROM pg_class JOIN pg_partitioned_table ON partrelid = oid JOIN pg_attribute ON attrelid = oid AND attnum = partattrs[0]
WHERE oid = :'table'::regclass \gset

-- The last partition has no end: what was to come into later ones, but they were not made in time, is in it.
SELECT (regexp_match(pg_get_expr(relpartbound, oid), $$FROM \('(.+)'\) TO \(MAXVALUE\)$$))[1] AS start,
  EXISTS (SELECT 1 FROM :rest) AS late, pg_temp.bound_above(:'table', :'column', :size, :ahead) AS horizon
FROM pg_class WHERE oid = :'rest'::regclass \gset
SELECT CASE WHEN :'late' THEN pg_temp.bound_above(:'rest', :'column', :size, 1) ELSE :'start' END AS next \gset

-- It becomes an ordinary one that ends at a bound, and is followed by an empty one without an end.
CREATE FUNCTION pg_temp.end_rest(parent text, rest text, start text, bound text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  ended regclass := rest;
  base text := (SELECT relname FROM pg_class WHERE oid = parent::regclass);
BEGIN
  EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', parent, rest);
  EXECUTE format('ALTER TABLE %s RENAME TO %I', rest, base || '_' || translate(start, '-', '_'));
  EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)', parent, ended, start, bound);
  PERFORM pg_temp.forget_bound(ended);
  PERFORM pg_temp.make_partition(parent, rest, format('FROM (%L) TO (MAXVALUE)', bound), ended);
END $$;
SET statement_timeout = '4s';
SELECT format('CALL pg_temp.attempt(%s, %L)', number, format('SELECT pg_temp.promise_bound(%L, %L, %L)', :'rest', :'column', :'next'))
  FROM generate_series(1, 120) AS number WHERE :'late' ORDER BY number \gexec
CALL pg_temp.stop_if_failed(:'rest');
SET statement_timeout = 0;
SET lock_timeout = 0;
SELECT format('ALTER TABLE %s VALIDATE CONSTRAINT ck_bound', :'rest') WHERE :'late' \gexec
SET lock_timeout = '500ms';
SET statement_timeout = '4s';
SELECT format('CALL pg_temp.attempt(%s, %L)', number, format('SELECT pg_temp.without_references(%L, %L)', :'table',
    format('SELECT pg_temp.end_rest(%L, %L, %L, %L)', :'table', :'rest', :'start', :'next')))
  FROM generate_series(1, 120) AS number WHERE :'late' ORDER BY number \gexec
CALL pg_temp.stop_if_failed(:'rest');
SELECT format('CALL pg_temp.attempt(%s, %L)', number, format('SELECT pg_temp.end_rest(%L, %L, %L, %L)', :'table', :'rest',
    :'next':::type + step:::number, :'next':::type + (step + :size):::number))
  FROM generate_series(0, :'horizon':::type - :'next':::type - 1, :size) AS step, generate_series(1, 120) AS number
  ORDER BY step, number \gexec
CALL pg_temp.stop_if_failed(:'table');

SELECT format('CALL pg_temp.attempt(%s, %L)', number, format('DROP TABLE %s', partition))
  FROM generate_series(1, 120) AS number, (
    SELECT inhrelid::regclass, (regexp_match(pg_get_expr(relpartbound, inhrelid), $$TO \('(.+)'\)$$))[1]
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = :'table'::regclass) AS ended (partition, bound)
  WHERE :'type' = 'date' AND :keep > 0 AND bound <= ((now() AT TIME ZONE 'UTC')::date - :keep + 1)::text
  ORDER BY bound, number \gexec
CALL pg_temp.stop_if_failed(:'table');
RESET statement_timeout;
\ir validate.sql
