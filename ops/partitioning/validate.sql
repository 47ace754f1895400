-- Reads the rows of the tables that refer to the table, which blocks nobody, and makes the statistics of the table as a whole, which
-- autovacuum makes of partitions only.
SET lock_timeout = 0;
SELECT format('ALTER TABLE %s VALIDATE CONSTRAINT %I', conrelid::regclass, conname)
  FROM pg_constraint WHERE confrelid = :'table'::regclass AND contype = 'f' AND NOT convalidated AND conparentid = 0 \gexec
SELECT format('ANALYZE %s', :'table'::regclass) \gexec
