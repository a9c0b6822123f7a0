-- rw_catalog with RisingWave's columns. Jobs, progress, nodes and materialized views (which change while a job runs)
-- are read from the lake; the rest from the copies that catalog.system_views.refresh takes.

-- Jobs still at work, and what each of their fragments has read. A snapshot backfill counts rows of finished slices.
CREATE OR REPLACE VIEW rwc._fragment_progress AS
SELECT s.job_id, s.fragment_id, any_value(s.upstream_id) AS upstream_id, count(*) AS slices,
       count(f.slice_id) AS finished_slices, sum(s.row_count)::BIGINT AS total,
       coalesce(sum(s.row_count) FILTER (f.slice_id IS NOT NULL), 0)::BIGINT AS consumed
FROM lake.sparkwave.slices s
LEFT JOIN (SELECT DISTINCT job_id, fragment_id, slice_id FROM lake.sparkwave.finished_slices) f
    USING (job_id, fragment_id, slice_id)
GROUP BY s.job_id, s.fragment_id;

CREATE OR REPLACE MACRO rwc._progress(consumed, total) AS
    if(total = 0, '99.99%', printf('%.2f%% (%d/%d)', 100.0 * consumed / total, consumed, total));

CREATE OR REPLACE VIEW rwc._job_progress AS
SELECT j.id, r.database, r.schema, r.name, r.definition, j.is_background, j.is_serverless, r.initialized_at,
       CASE WHEN j.status = 'INITIAL' OR p.job_id IS NULL THEN '0.0%'
            WHEN p.finished_slices = p.slices THEN 'LogStore [actor: 0/1, avg lag 0ns]'
            ELSE 'Snapshot [' || rwc._progress(p.consumed, p.total) || ']' END AS progress
FROM lake.sparkwave.jobs j
JOIN lake.sparkwave.relations r ON r.id = j.id
LEFT JOIN (SELECT job_id, sum(slices) AS slices, sum(finished_slices) AS finished_slices,
                  sum(consumed)::BIGINT AS consumed, sum(total)::BIGINT AS total
           FROM rwc._fragment_progress GROUP BY job_id) p ON p.job_id = j.id
WHERE j.status IN ('INITIAL', 'CREATING');

-- SHOW JOBS.
CREATE OR REPLACE VIEW rwc._show_jobs AS
SELECT id AS "Id", definition AS "Statement", if(is_background, 'BACKGROUND', 'FOREGROUND') AS "Create Type",
       progress AS "Progress"
FROM rwc._job_progress ORDER BY id;

CREATE OR REPLACE VIEW rwc.rw_ddl_progress AS
SELECT id AS ddl_id, definition AS ddl_statement, if(is_background, 'BACKGROUND', 'FOREGROUND') AS create_type, progress,
       initialized_at, is_serverless AS is_serverless_backfill, 'SNAPSHOT_BACKFILL' AS backfill_type
FROM rwc._job_progress;

CREATE OR REPLACE VIEW rwc.rw_fragment_backfill_progress AS
SELECT p.job_id::INTEGER AS job_id, p.fragment_id, j.schema || '.' || j.name AS job_name,
       u.schema || '.' || u.name AS upstream_table_name,
       if(p.total = 0, '100% (0/0)', rwc._progress(p.consumed, p.total)) AS progress
FROM rwc._fragment_progress p
JOIN rwc._job_progress j ON j.id = p.job_id
LEFT JOIN lake.sparkwave.relations u ON u.id = p.upstream_id;

CREATE OR REPLACE VIEW rwc.rw_backfill_info AS
SELECT p.job_id::INTEGER AS job_id, p.fragment_id, 0::INTEGER AS backfill_state_table_id,
       p.upstream_id::INTEGER AS backfill_target_relation_id, 'SNAPSHOT_BACKFILL' AS backfill_type,
       coalesce(j.snapshot, 0) AS backfill_epoch
FROM rwc._fragment_progress p JOIN lake.sparkwave.jobs j ON j.id = p.job_id
WHERE j.status IN ('INITIAL', 'CREATING');

-- Creating ones are listed too.
CREATE OR REPLACE VIEW rwc.rw_materialized_views AS
SELECT r.id::INTEGER AS id, r.name, r.schema_id::INTEGER AS schema_id, r.schema AS schema_name,
       r.owner_id::INTEGER AS owner, r.definition, false AS append_only,
       [r.owner || '=r/' || r.owner] AS acl, r.initialized_at, r.created_at,
       NULL::VARCHAR AS initialized_at_cluster_version, NULL::VARCHAR AS created_at_cluster_version,
       coalesce(j.is_background, false) AS background_ddl, if(r.created, 'Created', 'Creating') AS status
FROM pgc._all_relations r
LEFT JOIN lake.sparkwave.jobs j ON j.id = r.id
WHERE r.kind = 'materialized view' AND r.database = pgf.session_database()
  AND (r.created OR coalesce(j.status, '') <> 'FAILED');

CREATE OR REPLACE VIEW rwc.rw_streaming_jobs AS
SELECT j.id::INTEGER AS id, r.name, d.id::INTEGER AS database_id, j.status, 'adaptive' AS parallelism,
       256::INTEGER AS max_parallelism, j.resource_group
FROM lake.sparkwave.jobs j
JOIN lake.sparkwave.relations r ON r.id = j.id
JOIN pgc._databases d ON d.name = r.database
WHERE j.status <> 'FAILED';

CREATE OR REPLACE VIEW rwc.rw_streaming_job_info AS
SELECT j.*, d.name AS database_name FROM rwc.rw_streaming_jobs j JOIN pgc._databases d ON d.id = j.database_id;

CREATE OR REPLACE VIEW rwc.rw_streaming_parallelism AS
SELECT id, name, 'materialized view' AS relation_type, parallelism, max_parallelism FROM rwc.rw_streaming_jobs;

CREATE OR REPLACE VIEW rwc.rw_table_fragments AS
SELECT id AS table_id, status, parallelism, max_parallelism FROM rwc.rw_streaming_jobs;

CREATE OR REPLACE VIEW rwc.rw_fragments AS
SELECT p.fragment_id, p.job_id::INTEGER AS table_id, 'HASH' AS distribution_type, []::INTEGER[] AS state_table_ids,
       []::INTEGER[] AS upstream_fragment_ids, ['STREAM_SCAN', 'SNAPSHOT_BACKFILL_STREAM_SCAN'] AS flags,
       1::INTEGER AS parallelism, 256::INTEGER AS max_parallelism, 'inherit(adaptive)' AS parallelism_policy
FROM rwc._fragment_progress p;

-- One row a compute node; a serverless backfill's node is listed while it lives.
CREATE OR REPLACE VIEW rwc.rw_worker_nodes AS
SELECT id::INTEGER AS id, name AS host, port::VARCHAR AS port, 'WORKER_TYPE_COMPUTE_NODE' AS type, state,
       cores AS parallelism, true AS is_streaming, true AS is_serving, '' AS internal_rpc_host_addr,
       NULL::VARCHAR AS rw_version, memory_bytes AS system_total_memory_bytes, cores::BIGINT AS system_total_cpu_cores,
       started_at, resource_group, false AS is_iceberg_compactor
FROM lake.sparkwave.nodes ORDER BY id;

-- Every group that a node, a database or a job names.
CREATE OR REPLACE VIEW rwc.rw_resource_groups AS
WITH entry AS (
    SELECT resource_group AS name, 1 AS worker, coalesce(cores, 0) AS cores, 0 AS database, 0 AS job FROM lake.sparkwave.nodes
    UNION ALL SELECT 'default', 0, 0, 1, 0 FROM pgc._databases
    UNION ALL SELECT resource_group, 0, 0, 0, 1 FROM rwc.rw_streaming_jobs
)
SELECT name, sum(worker)::BIGINT AS streaming_workers, sum(cores)::BIGINT AS parallelism,
       sum(database)::BIGINT AS databases, sum(job)::BIGINT AS streaming_jobs
FROM entry GROUP BY name;

CREATE OR REPLACE VIEW rwc.rw_event_logs AS
SELECT md5(concat_ws('/', happened_at, event_type, job_id, info)) AS unique_id, happened_at AS "timestamp", event_type, if(json_valid(info), info, to_json(info))::JSON AS info
FROM lake.sparkwave.events ORDER BY happened_at;

CREATE OR REPLACE VIEW rwc.rw_recovery_info AS
SELECT id::INTEGER AS database_id, name AS database_name, 'RUNNING' AS recovery_state,
       NULL::VARCHAR AS last_database_event, NULL::VARCHAR AS last_global_event, true AS in_global_running,
       false AS in_global_recovering
FROM pgc._databases;

CREATE OR REPLACE VIEW rwc.rw_tables AS
SELECT id::INTEGER AS id, name, schema_id::INTEGER AS schema_id, owner_id::INTEGER AS owner, definition,
       append_only, false AS refreshable, [owner || '=arwd/' || owner] AS acl, initialized_at, created_at,
       NULL::VARCHAR AS initialized_at_cluster_version, NULL::VARCHAR AS created_at_cluster_version
FROM pgc._relations WHERE kind = 'table' AND database = pgf.session_database();

CREATE OR REPLACE VIEW rwc.rw_views AS
SELECT id::INTEGER AS id, name, schema_id::INTEGER AS schema_id, owner_id::INTEGER AS owner, definition,
       [owner || '=r/' || owner] AS acl
FROM pgc._relations WHERE kind = 'view' AND database = pgf.session_database();

CREATE OR REPLACE VIEW rwc.rw_relations AS
SELECT id, name, 'table' AS relation_type, schema_id, owner, definition, acl FROM rwc.rw_tables
UNION ALL SELECT id, name, 'view', schema_id, owner, definition, acl FROM rwc.rw_views
UNION ALL SELECT id, name, 'materialized view', schema_id, owner, definition, acl FROM rwc.rw_materialized_views;

CREATE OR REPLACE VIEW rwc.rw_columns AS
SELECT c.relation_id::INTEGER AS relation_id, c.name,
       row_number() OVER (PARTITION BY c.relation_id ORDER BY c.position)::INTEGER AS position, c.is_hidden,
       c.is_key AS is_primary_key, c.is_key AS is_distribution_key, false AS is_generated,
       NOT c.not_null AS is_nullable, NULL::VARCHAR AS generation_expression, c.type AS data_type,
       c.type_oid::INTEGER AS type_oid, c.length AS type_len, t.typname AS udt_type
FROM pgc._columns c
JOIN pgc._relations r ON r.id = c.relation_id
LEFT JOIN pgc._all_types t ON t.oid = c.type_oid
WHERE r.database = pgf.session_database();

CREATE OR REPLACE VIEW rwc.rw_table_stats AS
SELECT __oid::INTEGER AS id, __rows::BIGINT AS total_key_count, 0::BIGINT AS total_key_size,
       __bytes::BIGINT AS total_value_size
FROM pgf._size;

CREATE OR REPLACE VIEW rwc.rw_depend AS
SELECT id::INTEGER AS objid, unnest(upstreams)::INTEGER AS refobjid FROM pgc._relations;

CREATE OR REPLACE VIEW rwc.rw_schemas AS
SELECT oid::INTEGER AS id, nspname AS name, nspowner::INTEGER AS owner, ['root=UC/root'] AS acl FROM pgc.pg_namespace;

CREATE OR REPLACE VIEW rwc.rw_databases AS
SELECT id::INTEGER AS id, name, 1::INTEGER AS owner, ['root=Cc/root'] AS acl, 'default' AS resource_group,
       NULL::INTEGER AS barrier_interval_ms, NULL::BIGINT AS checkpoint_frequency
FROM pgc._databases;

CREATE OR REPLACE VIEW rwc.rw_users AS
SELECT id::INTEGER AS id, name, is_super, is_super AS create_db, is_super AS create_user, true AS can_login FROM pgc._roles;

CREATE OR REPLACE VIEW rwc.rw_system_tables AS
SELECT id::INTEGER AS id, name, schema_id::INTEGER AS schema_id, 1::INTEGER AS owner, NULL::VARCHAR AS definition,
       []::VARCHAR[] AS acl
FROM pgc._system_relations;

-- What does not exist here.
CREATE OR REPLACE TABLE rwc.rw_sources (
    id INTEGER, name VARCHAR, schema_id INTEGER, owner INTEGER, connector VARCHAR, columns VARCHAR[],
    format VARCHAR, row_encode VARCHAR, append_only BOOLEAN, associated_table_id INTEGER, connection_id INTEGER,
    definition VARCHAR, acl VARCHAR[], initialized_at TIMESTAMPTZ, created_at TIMESTAMPTZ,
    initialized_at_cluster_version VARCHAR, created_at_cluster_version VARCHAR, is_shared BOOLEAN,
    connector_props VARCHAR, format_encode_options VARCHAR
);
CREATE OR REPLACE TABLE rwc.rw_sinks (
    id INTEGER, name VARCHAR, schema_id INTEGER, owner INTEGER, connector VARCHAR, sink_type VARCHAR,
    connection_id INTEGER, definition VARCHAR, target_table_name VARCHAR, acl VARCHAR[], initialized_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ, initialized_at_cluster_version VARCHAR, created_at_cluster_version VARCHAR,
    background_ddl BOOLEAN, connector_props VARCHAR, format_encode_options VARCHAR
);
CREATE OR REPLACE TABLE rwc.rw_indexes (
    id INTEGER, name VARCHAR, primary_table_id INTEGER, key_columns SMALLINT[], include_columns SMALLINT[],
    schema_id INTEGER, owner INTEGER, definition VARCHAR, acl VARCHAR[], initialized_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ, initialized_at_cluster_version VARCHAR, created_at_cluster_version VARCHAR,
    background_ddl BOOLEAN
);
CREATE OR REPLACE TABLE rwc.rw_functions (
    id INTEGER, name VARCHAR, schema_id INTEGER, owner INTEGER, type VARCHAR, arg_type_ids INTEGER[],
    return_type_id INTEGER, language VARCHAR, link VARCHAR, acl VARCHAR[], always_retry_on_network_error BOOLEAN
);
CREATE OR REPLACE TABLE rwc.rw_connections (
    id INTEGER, name VARCHAR, schema_id INTEGER, owner INTEGER, type VARCHAR, provider VARCHAR, acl VARCHAR[],
    connection_params VARCHAR
);
CREATE OR REPLACE TABLE rwc.rw_secrets (
    id INTEGER, name VARCHAR, schema_id INTEGER, owner INTEGER, acl VARCHAR[]
);
CREATE OR REPLACE TABLE rwc.rw_subscriptions (
    id INTEGER, name VARCHAR, schema_id INTEGER, owner INTEGER, definition VARCHAR, acl VARCHAR[],
    initialized_at TIMESTAMPTZ, created_at TIMESTAMPTZ, initialized_at_cluster_version VARCHAR,
    created_at_cluster_version VARCHAR, retention_seconds BIGINT
);
CREATE OR REPLACE TABLE rwc.rw_types (
    id INTEGER, name VARCHAR, input_oid VARCHAR, typelem INTEGER, typarray INTEGER
);
CREATE OR REPLACE TABLE rwc.rw_rate_limit (
    fragment_id INTEGER, fragment_type VARCHAR[], node_name VARCHAR, table_id INTEGER, rate_limit INTEGER
);
CREATE OR REPLACE TABLE rwc.rw_cdc_progress (
    job_id INTEGER, split_total_count BIGINT, split_backfilled_count BIGINT, split_completed_count BIGINT
);
CREATE OR REPLACE TABLE rwc.rw_internal_tables (
    id INTEGER, name VARCHAR, schema_id INTEGER, owner INTEGER, definition VARCHAR, acl VARCHAR[],
    initialized_at TIMESTAMPTZ, created_at TIMESTAMPTZ, initialized_at_cluster_version VARCHAR,
    created_at_cluster_version VARCHAR
);
