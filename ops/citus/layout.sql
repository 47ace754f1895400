-- The layout of README.md. Run it with psql as a superuser on the coordinator, in the database of the service, after `migrate`.
-- Change the addresses. A second run ends with an error at create_distributed_table.

SELECT citus_set_coordinator_host('10.0.0.10', 5432);
SELECT citus_add_node('10.0.0.11', 5432);
SELECT citus_add_node('10.0.0.12', 5432);

-- 32 shards can be spread over up to 32 workers. All other tables stay local.
SELECT create_distributed_table('pet', 'id', shard_count => 32);

-- The rows that pet had before are still in its local table, where nothing reads them.
SELECT truncate_local_data_after_distributing_table('pet');

SELECT nodename, count(*) AS shards FROM citus_shards WHERE table_name = 'pet'::regclass GROUP BY nodename;
