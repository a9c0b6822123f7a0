-- The live state of sessions. For a statement that reads a relation, the server sets a variable of its name, as JSON.

CREATE OR REPLACE VIEW pgc.pg_stat_activity AS
SELECT (SELECT d.id FROM pgc._databases d WHERE d.name = r.datname) AS datid, r.datname, r.pid,
       NULL::INTEGER AS leader_pid, (SELECT u.id FROM pgc._roles u WHERE u.name = r.usename) AS usesysid, r.usename,
       r.application_name, r.client_addr, NULL::VARCHAR AS client_hostname, r.client_port, r.backend_start,
       r.xact_start, r.query_start, r.state_change, r.wait_event_type, r.wait_event, r.state, NULL::UINTEGER AS backend_xid, NULL::UINTEGER AS backend_xmin,
       NULL::BIGINT AS query_id, r.query, 'client backend' AS backend_type
FROM (SELECT unnest(from_json(coalesce(getvariable('pg_stat_activity')::VARCHAR, '[]'), '[{
    "datname": "VARCHAR", "pid": "INTEGER", "usename": "VARCHAR", "application_name": "VARCHAR",
    "client_addr": "VARCHAR", "client_port": "INTEGER", "backend_start": "TIMESTAMPTZ", "xact_start": "TIMESTAMPTZ",
    "query_start": "TIMESTAMPTZ", "state_change": "TIMESTAMPTZ", "wait_event_type": "VARCHAR",
    "wait_event": "VARCHAR", "state": "VARCHAR", "query": "VARCHAR"}]')) AS r);

-- The session's own prepared statements and cursors.
CREATE OR REPLACE VIEW pgc.pg_prepared_statements AS
SELECT r.name, r.statement, r.prepare_time, r.parameter_types, r.from_sql, 0::BIGINT AS generic_plans, 0::BIGINT AS custom_plans
FROM (SELECT unnest(from_json(coalesce(getvariable('pg_prepared_statements')::VARCHAR, '[]'), '[{
    "name": "VARCHAR", "statement": "VARCHAR", "prepare_time": "TIMESTAMPTZ", "parameter_types": ["VARCHAR"],
    "from_sql": "BOOLEAN"}]')) AS r);

CREATE OR REPLACE VIEW pgc.pg_cursors AS
SELECT r.name, r.statement, r.is_holdable, r.is_binary, r.is_scrollable, r.creation_time
FROM (SELECT unnest(from_json(coalesce(getvariable('pg_cursors')::VARCHAR, '[]'), '[{
    "name": "VARCHAR", "statement": "VARCHAR", "is_holdable": "BOOLEAN", "is_binary": "BOOLEAN",
    "is_scrollable": "BOOLEAN", "creation_time": "TIMESTAMPTZ"}]')) AS r);

-- Beyond RisingWave: the copies of relations in memory (executor/memory/serving_copies.py), and the lake's snapshot
-- that they reflect. `hits` counts the queries over each copy.
CREATE OR REPLACE VIEW rwc.rw_serving_cache AS
SELECT r.relation_id, r.database_name, r.schema_name, r.relation_name, r.rows, r.bytes, r.snapshot, r.hits, r.since
FROM (SELECT unnest(from_json(coalesce(getvariable('rw_serving_cache')::VARCHAR, '[]'), '[{
    "relation_id": "INTEGER", "database_name": "VARCHAR", "schema_name": "VARCHAR", "relation_name": "VARCHAR",
    "rows": "BIGINT", "bytes": "BIGINT", "snapshot": "BIGINT", "hits": "BIGINT", "since": "TIMESTAMPTZ"}]')) AS r);

-- Beyond RisingWave: the memory that epochs use for materialized views, indexes and sinks
-- (executor/memory/shared_buffer.py) and for their internal tables, the states of operators. `unstored_changes` are
-- rows added or removed since the last checkpoint; `rows` and `bytes` are those of a copy. At `snapshot` the lake has
-- the rows without those changes.
CREATE OR REPLACE VIEW rwc.rw_shared_buffer AS
SELECT r.relation_id, r.database_name, r.schema_name, r.relation_name, r.table_name, r.unstored_changes, r.rows, r.bytes,
       r.snapshot
FROM (SELECT unnest(from_json(coalesce(getvariable('rw_shared_buffer')::VARCHAR, '[]'), '[{
    "relation_id": "INTEGER", "database_name": "VARCHAR", "schema_name": "VARCHAR", "relation_name": "VARCHAR",
    "table_name": "VARCHAR", "unstored_changes": "BIGINT", "rows": "BIGINT", "bytes": "BIGINT",
    "snapshot": "BIGINT"}]')) AS r);

-- Beyond RisingWave: every streaming job. A created job shows everything committed up to `fresh_as_of`; a barrier moves
-- all jobs there at once, except those that are behind: `reason` says why, and `tries` how often the job has failed in
-- a row. No query may read a FAILED job.
CREATE OR REPLACE VIEW rwc.rw_job_status AS
SELECT r.job_id, r.database_name, r.schema_name, r.job_name, r.job_type, r.owner, r.state, r.resource_group,
       r.create_type, r.is_serverless_backfill, r.initialized_at, r.fresh_as_of,
       if(r.fresh_as_of > now(), 0, epoch_ms(now()) - epoch_ms(r.fresh_as_of))::BIGINT AS lag_ms, r.reason,
       r.reason_since, r.tries, r.next_try_at, r.changed_rows_per_second
FROM (SELECT unnest(from_json(coalesce(getvariable('rw_job_status')::VARCHAR, '[]'), '[{
    "job_id": "INTEGER", "database_name": "VARCHAR", "schema_name": "VARCHAR", "job_name": "VARCHAR",
    "job_type": "VARCHAR", "owner": "VARCHAR", "state": "VARCHAR", "resource_group": "VARCHAR",
    "create_type": "VARCHAR", "is_serverless_backfill": "BOOLEAN", "initialized_at": "TIMESTAMPTZ",
    "fresh_as_of": "TIMESTAMPTZ", "reason": "VARCHAR", "reason_since": "TIMESTAMPTZ", "tries": "INTEGER",
    "next_try_at": "TIMESTAMPTZ", "changed_rows_per_second": "DOUBLE"}]')) AS r);

-- Beyond RisingWave, which has the metric user_compute_error: the rows of each view, index and sink in which an
-- expression failed and is NULL. Only the owner and superusers see the reason, since it may contain a value of the row.
CREATE OR REPLACE VIEW rwc.rw_compute_errors AS
SELECT r.relation_id, r.database_name, r.schema_name, r.relation_name, r.errors, r.last_error, r.last_at
FROM (SELECT unnest(from_json(coalesce(getvariable('rw_compute_errors')::VARCHAR, '[]'), '[{
    "relation_id": "INTEGER", "database_name": "VARCHAR", "schema_name": "VARCHAR", "relation_name": "VARCHAR",
    "errors": "BIGINT", "last_error": "VARCHAR", "last_at": "TIMESTAMPTZ"}]')) AS r);

-- Beyond RisingWave: the checksum and the number of the rows of views and indexes, as of the last checkpoint
-- (catalog/stores/view_checksums.py), and the newest result of comparing them with their queries, at the snapshot
-- `audited_snapshot`. NULL: not known yet.
CREATE OR REPLACE VIEW rwc.rw_view_checksums AS
SELECT r.relation_id, r.database_name, r.schema_name, r.relation_name, r.checksum, r.row_count, r.result, r.audited_at,
       r.audited_snapshot
FROM (SELECT unnest(from_json(coalesce(getvariable('rw_view_checksums')::VARCHAR, '[]'), '[{
    "relation_id": "INTEGER", "database_name": "VARCHAR", "schema_name": "VARCHAR", "relation_name": "VARCHAR",
    "checksum": "VARCHAR", "row_count": "BIGINT", "result": "VARCHAR", "audited_at": "TIMESTAMPTZ",
    "audited_snapshot": "BIGINT"}]')) AS r);

-- Beyond RisingWave: the last comparisons of each view and index with its query. Only the owner and superusers see the
-- detail and the evidence, since they contain rows.
CREATE OR REPLACE VIEW rwc.rw_view_audits AS
SELECT r.relation_id, r.database_name, r.schema_name, r.relation_name, r.started_at, r.seconds, r.snapshot, r.result,
       r.engine, r.checksum, r.row_count, r.detail, r.evidence::JSON AS evidence
FROM (SELECT unnest(from_json(coalesce(getvariable('rw_view_audits')::VARCHAR, '[]'), '[{
    "relation_id": "INTEGER", "database_name": "VARCHAR", "schema_name": "VARCHAR", "relation_name": "VARCHAR",
    "started_at": "TIMESTAMPTZ", "seconds": "DOUBLE", "snapshot": "BIGINT", "result": "VARCHAR", "engine": "VARCHAR",
    "checksum": "VARCHAR", "row_count": "BIGINT", "detail": "VARCHAR", "evidence": "VARCHAR"}]')) AS r);

-- Beyond RisingWave: the last hour of the server, a row each ten seconds (server/operations/last_hour.py). `barrier_ms` is
-- the average of the barriers that changed a view, `lag_ms` the largest lag of a created job.
CREATE OR REPLACE VIEW rwc.rw_server_history AS
SELECT r.at, r.barriers_per_second, r.barrier_ms, r.failed_barriers, r.changed_rows_per_second, r.backfill_rows_per_second,
       r.commits_per_second, r.statements_per_second, r.statement_ms, r.lag_ms
FROM (SELECT unnest(from_json(coalesce(getvariable('rw_server_history')::VARCHAR, '[]'), '[{
    "at": "TIMESTAMPTZ", "barriers_per_second": "DOUBLE", "barrier_ms": "DOUBLE", "failed_barriers": "BIGINT",
    "changed_rows_per_second": "DOUBLE", "backfill_rows_per_second": "DOUBLE", "commits_per_second": "DOUBLE",
    "statements_per_second": "DOUBLE", "statement_ms": "DOUBLE", "lag_ms": "DOUBLE"}]')) AS r);

-- The last hour of each job: a number for each `interval_seconds` up to `until`, the oldest first.
CREATE OR REPLACE VIEW rwc.rw_job_history AS
SELECT r.relation_id AS job_id, r.database_name, r.schema_name, r.relation_name AS job_name, r.until, r.interval_seconds,
       r.changed_rows_per_second, r.backfill_rows_per_second, r.lag_ms
FROM (SELECT unnest(from_json(coalesce(getvariable('rw_job_history')::VARCHAR, '[]'), '[{
    "relation_id": "INTEGER", "database_name": "VARCHAR", "schema_name": "VARCHAR", "relation_name": "VARCHAR",
    "until": "TIMESTAMPTZ", "interval_seconds": "INTEGER", "changed_rows_per_second": ["DOUBLE"],
    "backfill_rows_per_second": ["DOUBLE"], "lag_ms": ["DOUBLE"]}]')) AS r);

-- Beyond RisingWave: the newest statements that took a second or more, also of ended sessions. Only a superuser or a
-- member of the session's role sees the text.
CREATE OR REPLACE VIEW rwc.rw_slow_statements AS
SELECT r.pid, r.usename, r.datname, r.application_name, r.started_at, r.seconds, r.query
FROM (SELECT unnest(from_json(coalesce(getvariable('rw_slow_statements')::VARCHAR, '[]'), '[{
    "pid": "INTEGER", "usename": "VARCHAR", "datname": "VARCHAR", "application_name": "VARCHAR",
    "started_at": "TIMESTAMPTZ", "seconds": "DOUBLE", "query": "VARCHAR"}]')) AS r);

-- Beyond RisingWave: the files of each stored relation in the newest snapshot of the lake, without those of the states
-- of its operators. Rows that are in no file yet are in the lake's catalog (catalog/lake/stored_files.py).
CREATE OR REPLACE VIEW rwc.rw_relation_files AS
SELECT r.relation_id, r.database_name, r.schema_name, r.relation_name, r.kind AS relation_type, r.data_files,
       r.data_bytes, r.delete_files, r.delete_bytes, r.smallest_bytes, r.largest_bytes
FROM (SELECT unnest(from_json(coalesce(getvariable('rw_relation_files')::VARCHAR, '[]'), '[{
    "relation_id": "INTEGER", "database_name": "VARCHAR", "schema_name": "VARCHAR", "relation_name": "VARCHAR",
    "kind": "VARCHAR", "data_files": "BIGINT", "data_bytes": "BIGINT", "delete_files": "BIGINT",
    "delete_bytes": "BIGINT", "smallest_bytes": "BIGINT", "largest_bytes": "BIGINT"}]')) AS r);

-- Beyond RisingWave: the newest snapshots that the lake keeps, at most a hundred, with the number of tables that each
-- changed. `kept` is the number of all.
CREATE OR REPLACE VIEW rwc.rw_lake_snapshots AS
SELECT r.snapshot_id, r.created_at, r.changed_tables, r.kept, r.oldest_at
FROM (SELECT unnest(from_json(coalesce(getvariable('rw_lake_snapshots')::VARCHAR, '[]'), '[{
    "snapshot_id": "BIGINT", "created_at": "TIMESTAMPTZ", "changed_tables": "BIGINT", "kept": "BIGINT",
    "oldest_at": "TIMESTAMPTZ"}]')) AS r);

CREATE OR REPLACE MACRO pgf.pg_my_temp_schema() AS
    coalesce((SELECT n.oid FROM pgc.pg_namespace n WHERE n.nspname = getvariable('temporary_schema')), 0)::UINTEGER;
CREATE OR REPLACE MACRO pgf.pg_is_other_temp_schema(o) AS
    o IN (SELECT n.oid FROM pgc.pg_namespace n WHERE starts_with(n.nspname, 'pg_temp_')
          AND n.nspname IS DISTINCT FROM getvariable('temporary_schema'));
CREATE OR REPLACE MACRO pgf.pg_backend_pid() AS getvariable('pg_backend_pid')::INTEGER;
CREATE OR REPLACE MACRO pgf.pg_postmaster_start_time() AS getvariable('server_start')::TIMESTAMPTZ;
CREATE OR REPLACE MACRO pgf.pg_conf_load_time() AS getvariable('server_start')::TIMESTAMPTZ;
CREATE OR REPLACE MACRO pgf.pg_cancel_backend(who, process) AS sparkwave_signal(who, process::INTEGER, 'cancel');
CREATE OR REPLACE MACRO pgf.pg_terminate_backend(who, process) AS sparkwave_signal(who, process::INTEGER, 'terminate');
