-- Makes a table a partitioned one, while the service runs. README.md says when, and what requests notice. As the owner of the schema:
--
--   psql -X "$OWNER_URL" -v table=pet -v column=id -v size=10000000 -f partition.sql               by range: no row is copied
--   psql -X "$OWNER_URL" -v table=key_usage -v column=day -v size=7 -f partition.sql               by range of days
--   psql -X "$OWNER_URL" -v table=idempotency_key -v column=client_id -v hash=8 -f partition.sql   by hash: rows are copied
--
-- table   its name as the owner's search_path finds it
-- column  of type bigint or date, and part of the primary key and of each unique index
-- size    numbers or days of a partition
-- hash    number of partitions
--
-- If it fails, the table is as it was. If it is killed, a constraint ck_bound may be left, which the next run removes.
\ir functions.sql
\if :{?size} \else \set size 0 \endif
\if :{?hash} \else \set hash 0 \endif
SELECT set_config('partitioning.' || name, value, false) FROM (VALUES
  ('table', :'table'), ('column', :'column'), ('size', :'size'), ('hash', :'hash')) AS v (name, value) \g /dev/null

CREATE FUNCTION pg_temp.setting(name text) RETURNS text LANGUAGE sql AS $$ SELECT current_setting('partitioning.' || name) $$;

-- Refuses what would silently be left behind with the old table.
DO $$
DECLARE
  t regclass := pg_temp.setting('table');
  col text := pg_temp.setting('column');
  faults text;
BEGIN
  SELECT string_agg(what, '; ') INTO faults FROM (
    SELECT 'it is partitioned already' FROM pg_class WHERE oid = t AND relkind = 'p'
    UNION ALL SELECT format('it belongs to %s: connect as this role', relowner::regrole)
      FROM pg_class WHERE oid = t AND NOT pg_has_role(relowner, 'USAGE')
    UNION ALL SELECT 'give size or hash, 1 or more'
      WHERE (pg_temp.setting('size')::bigint > 0) = (pg_temp.setting('hash')::int > 0)
    UNION ALL SELECT format('it has no column %s of type bigint or date without null', col) WHERE NOT EXISTS (
      SELECT 1 FROM pg_attribute WHERE attrelid = t AND attname = col AND attnotnull
        AND atttypid IN ('bigint'::regtype, 'date'::regtype))
    UNION ALL SELECT format('%s is unique without %s, which no partitioned table can keep', indexrelid::regclass, col)
      FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attname = col
      WHERE indrelid = t AND (indisunique OR indisexclusion) AND NOT attnum = ANY (indkey)
    UNION ALL SELECT format('the index %s is invalid', indexrelid::regclass) FROM pg_index WHERE indrelid = t AND NOT indisvalid
    UNION ALL SELECT format('its foreign key %s refers to itself', conname) FROM pg_constraint WHERE conrelid = t AND confrelid = t
    UNION ALL SELECT format('it has the trigger %s', tgname) FROM pg_trigger WHERE tgrelid = t AND NOT tgisinternal
    UNION ALL SELECT format('it has the policy %s', polname) FROM pg_policy WHERE polrelid = t
    UNION ALL SELECT DISTINCT format('%s depends on it', ev_class::regclass) FROM pg_rewrite JOIN pg_depend
      ON classid = 'pg_rewrite'::regclass AND objid = pg_rewrite.oid AND refclassid = 'pg_class'::regclass AND refobjid = t
    UNION ALL SELECT format('the publication %s names it', pubname)
      FROM pg_publication_rel JOIN pg_publication ON pg_publication.oid = prpubid WHERE prrelid = t
    UNION ALL SELECT 'it has a parent' FROM pg_inherits WHERE inhrelid = t
  ) AS found (what);
  IF faults IS NOT NULL THEN RAISE EXCEPTION '% is not changed: %.', t, faults; END IF;
END $$;

SELECT set_config('partitioning.bound', pg_temp.bound_above(:'table', :'column', :size, 1), false) WHERE :size > 0 \g /dev/null
SELECT format('CALL pg_temp.attempt(%s, %L)', number,
    format('SELECT pg_temp.promise_bound(%L, %L, %L)', :'table', :'column', pg_temp.setting('bound')))
  FROM generate_series(1, 120) AS number WHERE :size > 0 ORDER BY number \gexec
CALL pg_temp.stop_if_failed(:'table');
-- Blocks no request, and ends an autovacuum of the table, which would hold up the swap.
SET lock_timeout = 0;
SELECT format('ALTER TABLE %s VALIDATE CONSTRAINT ck_bound', :'table'::regclass) WHERE :size > 0 \gexec
SET lock_timeout = '500ms';

CREATE FUNCTION pg_temp.partition() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  old regclass := pg_temp.setting('table');
  new text := old;
  base text := (SELECT relname FROM pg_class WHERE oid = old);
  schema text := (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = old);
  hash int := pg_temp.setting('hash');
  statements text[];
  one text;
BEGIN
  -- What makes the new table as the old one is, read before names change.
  SELECT array_agg(statement ORDER BY place) INTO statements FROM (
    SELECT 1, format('ALTER TABLE %s ADD CONSTRAINT %I %s', new, conname, pg_get_constraintdef(oid))
      FROM pg_constraint WHERE conrelid = old AND contype IN ('p', 'u', 'x')
    UNION ALL SELECT 2, pg_get_indexdef(indexrelid) FROM pg_index
      WHERE indrelid = old AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid AND conrelid = old)
    UNION ALL SELECT 3, format('ALTER TABLE %s ADD CONSTRAINT %I %s', new, conname, pg_get_constraintdef(oid))
      FROM pg_constraint WHERE conrelid = old AND contype = 'f'
    UNION ALL SELECT 4, format('GRANT %s ON %s TO %s', privilege_type, new, coalesce(nullif(grantee, 0)::regrole::text, 'PUBLIC'))
      FROM pg_class, aclexplode(relacl) WHERE oid = old AND grantee <> relowner
    UNION ALL SELECT 5, format('GRANT %s (%I) ON %s TO %s', privilege_type, attname, new, coalesce(nullif(grantee, 0)::regrole::text, 'PUBLIC'))
      FROM pg_attribute, aclexplode(attacl) WHERE attrelid = old
    UNION ALL SELECT 6, format('COMMENT ON TABLE %s IS %L', new, obj_description(old, 'pg_class'))
    -- Columns that take their values from a sequence by DEFAULT keep it.
    UNION ALL SELECT 7, format('ALTER SEQUENCE %s OWNED BY %s.%I', objid::regclass, new, attname)
      FROM pg_depend JOIN pg_sequence ON seqrelid = objid JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
      WHERE classid = 'pg_class'::regclass AND refobjid = old AND deptype = 'a'
    -- An identity column gets another sequence with the same name and rights, which goes on behind the last number.
    UNION ALL SELECT 8, format('ALTER TABLE %s ALTER %I ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %s INCREMENT %s MINVALUE %s '
        'MAXVALUE %s START %s RESTART %s CACHE %s)', new, attname, CASE attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END,
        seqrelid::regclass, seqincrement, seqmin, seqmax, seqstart, coalesce(pg_sequence_last_value(seqrelid) + seqincrement, seqstart), seqcache)
      FROM pg_attribute JOIN pg_sequence ON seqrelid = pg_get_serial_sequence(new, attname)::regclass WHERE attrelid = old AND attidentity <> ''
    UNION ALL SELECT 9, format('GRANT %s ON SEQUENCE %s TO %s', privilege_type, c.oid::regclass, coalesce(nullif(grantee, 0)::regrole::text, 'PUBLIC'))
      FROM pg_attribute JOIN pg_class c ON c.oid = pg_get_serial_sequence(new, attname)::regclass, aclexplode(relacl)
      WHERE attrelid = old AND attidentity <> '' AND grantee <> relowner
  ) AS definitions (place, statement);

  FOR one IN
    SELECT format('ALTER TABLE %s ALTER %I DROP IDENTITY', old, attname) FROM pg_attribute WHERE attrelid = old AND attidentity <> ''
    UNION ALL SELECT format('ALTER INDEX %s RENAME TO %I', indexrelid::regclass, relname || '_first')
      FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = old
    UNION ALL SELECT format('ALTER TABLE %s RENAME TO %I', old, base || '_first')
  LOOP EXECUTE one; END LOOP;
  EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING INDEXES EXCLUDING STATISTICS) PARTITION BY %s (%I)',
    new, old, CASE WHEN hash > 0 THEN 'HASH' ELSE 'RANGE' END, pg_temp.setting('column'));
  PERFORM pg_temp.forget_bound(new::regclass);
  FOREACH one IN ARRAY statements LOOP EXECUTE one; END LOOP;

  IF hash > 0 THEN
    FOR remainder IN 0 .. hash - 1 LOOP
      PERFORM pg_temp.make_partition(new, format('%s.%I', schema, base || '_' || remainder),
        format('WITH (MODULUS %s, REMAINDER %s)', hash, remainder), old);
    END LOOP;
    EXECUTE (SELECT format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM %s', new, string_agg(quote_ident(attname), ', '), old)
      FROM pg_attribute WHERE attrelid = old AND attnum > 0 AND NOT attisdropped AND attgenerated = '');
    EXECUTE format('DROP TABLE %s', old);
  ELSE
    EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (MINVALUE) TO (%L)', new, old, pg_temp.setting('bound'));
    PERFORM pg_temp.forget_bound(old);
    PERFORM pg_temp.make_partition(new, format('%s.%I', schema, base || '_rest'),
      format('FROM (%L) TO (MAXVALUE)', pg_temp.setting('bound')), old);
  END IF;
END $$;
-- Requests wait meanwhile: a table that takes longer to copy stays as it was.
SET statement_timeout = '4s';
SELECT format('CALL pg_temp.attempt(%s, %L)', number,
    format('SELECT pg_temp.without_references(%L, %L)', :'table', 'SELECT pg_temp.partition()'))
  FROM generate_series(1, 120) AS number ORDER BY number \gexec
RESET statement_timeout;
CALL pg_temp.stop_if_failed(:'table');
\ir validate.sql
