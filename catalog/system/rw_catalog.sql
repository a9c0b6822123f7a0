-- rw_catalog with RisingWave's columns. Jobs, progress, nodes and materialized views, which change while a job runs,
-- are read from the lake; the other relations from the copies that catalog.system.system_views.refresh makes.

-- The rows that each fragment of a creating job has read, and their total. A fragment cut into slices counts the rows
-- of finished slices; a row that several slices read counts as a part in each (executor/backfill/slicing.py). A
-- fragment that reads in order (`is_open`: its upstream grows meanwhile) counts the rows that its steps have read, of
-- those that existed at its start. The rows of running steps come from the server (executor/backfill/progress.py) in
-- the variable backfill_rows. All rows are read when the last step is finished, and not before. Totals never change,
-- and neither finished steps nor the server's numbers shrink, so progress never goes backwards.
CREATE OR REPLACE VIEW rwc._steps AS
SELECT job_id, fragment_id, slice_id, max(row_count) AS row_count, max(finished_at) AS finished_at
FROM lake.sparkwave.finished_slices GROUP BY job_id, fragment_id, slice_id;

-- Below the total until all steps are finished: a slice may have no rows, such as one that merges partial results.
CREATE OR REPLACE MACRO rwc._short_of(rows, total, is_all) AS if(is_all, rows, greatest(least(rows, total - 1), 0));

CREATE OR REPLACE VIEW rwc._finished_progress AS
SELECT s.job_id, s.fragment_id, any_value(s.upstream_id) AS upstream_id, false AS is_open,
       count(*) = count(f.slice_id) AS is_read, sum(s.row_count)::BIGINT AS total,
       rwc._short_of(coalesce(sum(s.row_count) FILTER (f.slice_id IS NOT NULL), 0)::BIGINT,
                     sum(s.row_count)::BIGINT, count(*) = count(f.slice_id)) AS finished
FROM lake.sparkwave.slices s LEFT JOIN rwc._steps f USING (job_id, fragment_id, slice_id)
GROUP BY s.job_id, s.fragment_id
UNION ALL
SELECT p.job_id, p.fragment_id, p.upstream_id, true, p.is_read, p.total, coalesce(f.finished, 0)
FROM (SELECT job_id, fragment_id, any_value(upstream_id) AS upstream_id, sum(row_total)::BIGINT AS total,
             bool_and(coalesce(position >= row_id_to, false)) AS is_read
      FROM lake.sparkwave.positions GROUP BY job_id, fragment_id) p
LEFT JOIN (SELECT job_id, fragment_id, sum(row_count)::BIGINT AS finished FROM rwc._steps GROUP BY job_id, fragment_id) f
    USING (job_id, fragment_id);

CREATE OR REPLACE VIEW rwc._fragment_progress AS
SELECT f.*, greatest(f.finished, if(f.is_read, 0, least(coalesce(r.rows, 0), f.total - 1))) AS consumed
FROM rwc._finished_progress f
LEFT JOIN (SELECT unnest(from_json(coalesce(getvariable('backfill_rows')::VARCHAR, '[]'), '[{
               "job_id": "BIGINT", "fragment_id": "BIGINT", "rows": "BIGINT"}]'), recursive := true)) r
    USING (job_id, fragment_id);

-- The id of a fragment of a creating job, which is numbered from 1 in its job: no other fragment has it.
CREATE OR REPLACE MACRO rwc._fragment_id(job_id, number) AS
    (1000000000 + (job_id * 100 + number) % 500000000)::INTEGER;

-- RisingWave's text (src/meta/src/barrier/progress.rs): pinned below 100 % when more was read than existed. Where that
-- can happen, it is pinned from the last row on, and nothing is rounded up to 100 %, so that it never falls.
CREATE OR REPLACE MACRO rwc._progress(consumed, total, is_open) AS
    CASE WHEN total = 0 THEN '99.99%'
         WHEN consumed > total OR (is_open AND consumed = total) THEN printf('99.99%% (%d/%d)', consumed, total)
         WHEN consumed = total THEN printf('100.00%% (%d/%d)', consumed, total)
         ELSE printf('%.2f%% (%d/%d)', least(100.0 * consumed / total, 99.99), consumed, total) END;

-- The percentage by numeric division, with 26 digits after the point, as in rw_fragment_backfill_progress.
CREATE OR REPLACE MACRO rwc._ratio(consumed, total) AS
    (100::HUGEINT * consumed) // total ||
    rtrim(rtrim('.' || lpad(((100::HUGEINT * consumed) % total * 100000000000000000000000000::HUGEINT // total)::VARCHAR,
                            26, '0'), '0'), '.');

-- A duration of milliseconds as Rust's {:?} prints it.
CREATE OR REPLACE MACRO rwc._duration(ms) AS
    CASE WHEN ms <= 0 THEN '0ns' WHEN ms < 1000 THEN ms || 'ms'
         ELSE rtrim(rtrim(printf('%.3f', ms / 1000.0), '0'), '.') || 's' END;

-- `is_finishing`: the job has asked a barrier to complete it (executor/backfill/creation.py, HANDING_OVER).
CREATE OR REPLACE VIEW rwc._creating_jobs AS
SELECT j.*, r.database, r.schema, r.name, r.kind,
       if(r.replaces IS NULL, r.definition, 'ALTER' || substr(r.definition, 7)) AS definition, r.initialized_at, j.strategy = 'SnapshotBackfill' AS is_snapshot,
       coalesce(j.waiting LIKE 'handing over%', false) AS is_finishing,
       epoch_ms(now()) - j.time_us // 1000 AS lag_ms
FROM lake.sparkwave.jobs j JOIN lake.sparkwave.relations r ON r.id = j.id
WHERE j.status IN ('INITIAL', 'CREATING');

CREATE OR REPLACE VIEW rwc._job_progress AS
SELECT j.*,
       CASE WHEN j.status = 'INITIAL' OR p.job_id IS NULL THEN '0.0%'
            WHEN NOT j.is_snapshot THEN if(p.is_read, '100%', rwc._progress(p.consumed, p.total, p.is_open))
            WHEN j.is_finishing THEN 'Finishing [epoch lag: ' || rwc._duration(j.lag_ms) || ']'
            WHEN p.is_read THEN 'LogStore [actor: 0/1, avg lag ' || rwc._duration(coalesce(j.lag_ms, 0)) || ']'
            ELSE 'Snapshot [' || rwc._progress(p.consumed, p.total, p.is_open) || ']' END
       || if(j.waiting LIKE 'slowed%', ', ' || j.waiting, '') AS progress
FROM rwc._creating_jobs j
LEFT JOIN (SELECT job_id, bool_and(is_read) AS is_read, bool_or(is_open) AS is_open, sum(total)::BIGINT AS total,
                  rwc._short_of(sum(consumed)::BIGINT, sum(total)::BIGINT, bool_and(is_read) OR bool_or(is_open)) AS consumed
           FROM rwc._fragment_progress GROUP BY job_id) p ON p.job_id = j.id;

-- SHOW JOBS.
CREATE OR REPLACE VIEW rwc._show_jobs AS
SELECT id AS "Id", definition AS "Statement", if(is_background, 'BACKGROUND', 'FOREGROUND') AS "Create Type",
       progress AS "Progress"
FROM rwc._job_progress ORDER BY id;

-- A job that is not tracked yet counts as normal, as in RisingWave.
CREATE OR REPLACE VIEW rwc.rw_ddl_progress AS
SELECT id AS ddl_id, definition AS ddl_statement, if(is_background, 'BACKGROUND', 'FOREGROUND') AS create_type, progress,
       initialized_at, is_serverless AS is_serverless_backfill,
       if(is_snapshot AND status = 'CREATING', 'SNAPSHOT_BACKFILL', 'NORMAL_BACKFILL') AS backfill_type
FROM rwc._job_progress;

CREATE OR REPLACE VIEW rwc.rw_fragment_backfill_progress AS
SELECT p.job_id::INTEGER AS job_id, rwc._fragment_id(p.job_id, p.fragment_id) AS fragment_id,
       j.schema || '.' || j.name AS job_name, u.schema || '.' || u.name AS upstream_table_name,
       if(p.total = 0, '100% (0/0)', printf('%s%% (%d/%d)', rwc._ratio(p.consumed, p.total), p.consumed, p.total)) AS progress
FROM rwc._fragment_progress p
JOIN rwc._creating_jobs j ON j.id = p.job_id
LEFT JOIN lake.sparkwave.relations u ON u.id = p.upstream_id;

-- The internal tables of backfills, one a fragment that is read. Their ids are of no other relation.
CREATE OR REPLACE VIEW rwc._backfill_tables AS
SELECT (2000000000 + (p.job_id * 100 + p.fragment_id) % 140000000)::INTEGER AS id,
       '__internal_' || p.job_id || '_' || p.fragment_id || '_streamscan' AS name, p.job_id::INTEGER AS job_id,
       rwc._fragment_id(p.job_id, p.fragment_id) AS fragment_id, j.is_snapshot
FROM rwc._fragment_progress p JOIN rwc._creating_jobs j ON j.id = p.job_id;

CREATE OR REPLACE VIEW rwc.rw_backfill_info AS
SELECT p.job_id::INTEGER AS job_id, t.fragment_id, t.id AS backfill_state_table_id,
       p.upstream_id::INTEGER AS backfill_target_relation_id,
       if(j.is_snapshot, 'SNAPSHOT_BACKFILL', 'ARRANGEMENT_OR_NO_SHUFFLE') AS backfill_type,
       if(j.is_snapshot, coalesce(j.snapshot, 0), 0)::BIGINT AS backfill_epoch
FROM rwc._fragment_progress p JOIN rwc._creating_jobs j ON j.id = p.job_id
JOIN rwc._backfill_tables t ON t.fragment_id = rwc._fragment_id(p.job_id, p.fragment_id);

-- Beyond RisingWave: the rows of all of these tables. A vnode is a slice, or a range of row ids that is read in order;
-- `_row_id` is that of the next row that it reads, NULL when it has read all.
CREATE OR REPLACE VIEW rwc.rw_backfill_states AS
SELECT s.job_id::INTEGER AS job_id, rwc._fragment_id(s.job_id, s.fragment_id) AS fragment_id, s.slice_id::INTEGER AS vnode,
       j.snapshot::BIGINT AS epoch, if(f.slice_id IS NULL, 0, coalesce(f.row_count, s.row_count))::BIGINT AS row_count,
       f.slice_id IS NOT NULL AS is_finished,
       if(f.slice_id IS NULL AND s.upstream_id IS NOT NULL, coalesce(s.row_id_from, 0), NULL)::BIGINT AS _row_id
FROM lake.sparkwave.slices s LEFT JOIN rwc._steps f USING (job_id, fragment_id, slice_id)
JOIN rwc._creating_jobs j ON j.id = s.job_id
UNION ALL
SELECT p.job_id::INTEGER, rwc._fragment_id(p.job_id, p.fragment_id), p.vnode::INTEGER, j.snapshot::BIGINT,
       (p.row_total::HUGEINT * (p.position - p.row_id_from) // greatest(p.row_id_to - p.row_id_from, 1))::BIGINT,
       p.position >= p.row_id_to, if(p.position >= p.row_id_to, NULL, p.position)::BIGINT
FROM lake.sparkwave.positions p JOIN rwc._creating_jobs j ON j.id = p.job_id;

-- Beyond RisingWave: the progress of every fragment of every creating job, and the time that it may still take.
--
-- The rate of a fragment is measured over windows of three consecutive steps: their rows divided by the time from the
-- end of the step before them to the end of the third. (Slices run two at a time, so the time between two ends means
-- little.) The fastest and the slowest window of its last twelve steps give the bounds of the remaining time:
--
--   seconds_left_low  = rows left / fastest rate, less the time since the last step, in which some of them were read
--   seconds_left_high = rows left / slowest rate, where the last three steps and the time since count as a window too,
--                       so that it grows while nothing happens
--
-- Steps without rows do not count. With fewer than four steps, or while a fragment does not read, there are no bounds.
CREATE OR REPLACE VIEW rwc._windows AS
SELECT job_id, fragment_id, finished_at, row_count, recent,
       lag(finished_at, 3) OVER steps AS started_at,
       row_count + lag(row_count, 1) OVER steps + lag(row_count, 2) OVER steps AS rows_of_three
FROM (SELECT *, row_number() OVER (PARTITION BY job_id, fragment_id ORDER BY finished_at DESC, slice_id DESC) AS recent
      FROM rwc._steps WHERE row_count > 0)
WHERE recent <= 12
WINDOW steps AS (PARTITION BY job_id, fragment_id ORDER BY recent DESC);

CREATE OR REPLACE MACRO rwc._seconds(start, stop) AS nullif(epoch_us(stop) - epoch_us(start), 0) / 1e6;

CREATE OR REPLACE VIEW rwc._rates AS
SELECT job_id, fragment_id, max(finished_at) AS last_at,
       (sum(row_count) - max_by(row_count, recent)) / rwc._seconds(min(finished_at), max(finished_at)) AS average,
       max(rows_of_three / rwc._seconds(started_at, finished_at)) AS fastest,
       least(min(rows_of_three / rwc._seconds(started_at, finished_at)),
             min(rows_of_three / rwc._seconds(started_at, now())) FILTER (recent = 1)) AS slowest
FROM rwc._windows GROUP BY job_id, fragment_id;

-- The scans that a backfill_order delays, and the relations that they wait for.
CREATE OR REPLACE VIEW rwc._held_back AS
SELECT e.job_id, e.edge[2] AS upstream_id, string_agg(DISTINCT u.schema || '.' || u.name, ', ') AS names
FROM (SELECT id AS job_id, unnest(backfill_order) AS edge FROM lake.sparkwave.jobs) e
JOIN rwc._fragment_progress p ON p.job_id = e.job_id AND p.upstream_id = e.edge[1] AND p.is_open AND NOT p.is_read
JOIN lake.sparkwave.relations u ON u.id = p.upstream_id
GROUP BY e.job_id, e.edge[2];

CREATE OR REPLACE VIEW rwc._fragment_status AS
SELECT j.id AS job_id, j.schema || '.' || j.name AS job_name, p.fragment_id, u.schema || '.' || u.name AS upstream_name,
       j.strategy, j.resource_group, p.consumed AS rows_done, p.finished, p.total AS rows_total, j.rate_limit, j.initialized_at,
       coalesce(j.waiting, 'waiting for ' || h.names || ' (backfill_order)') AS waiting, j.waiting_since,
       CASE WHEN j.waiting LIKE 'waiting for a permit%' THEN 'WAITING'
            WHEN j.is_finishing THEN 'FINISHING'
            WHEN j.status = 'INITIAL' AND j.waiting LIKE 'retrying%' THEN 'RETRYING'
            WHEN j.status = 'INITIAL' THEN 'PROVISIONING'
            WHEN bool_and(p.is_read) OVER (PARTITION BY j.id) THEN 'CATCHING UP'
            WHEN p.is_read THEN 'FINISHED'
            WHEN j.is_serverless AND j.waiting LIKE 'provisioning%' THEN 'PROVISIONING'
            WHEN j.rate_limit = 0 THEN 'PAUSED'
            WHEN j.waiting LIKE 'retrying%' THEN 'RETRYING'
            WHEN j.waiting LIKE 'Spark has been running%' OR j.waiting LIKE 'slowed%' THEN 'RUNNING'
            WHEN j.waiting IS NOT NULL OR h.names IS NOT NULL THEN 'WAITING'
            ELSE 'RUNNING' END AS state
FROM rwc._creating_jobs j
LEFT JOIN rwc._fragment_progress p ON p.job_id = j.id
LEFT JOIN rwc._held_back h ON h.job_id = j.id AND h.upstream_id = p.upstream_id
LEFT JOIN lake.sparkwave.relations u ON u.id = p.upstream_id;

CREATE OR REPLACE VIEW rwc.rw_backfill_status AS
SELECT s.job_id::INTEGER AS job_id, s.job_name, rwc._fragment_id(s.job_id, s.fragment_id) AS fragment_id, s.upstream_name, s.strategy, s.resource_group, s.state,
       s.rows_done, s.rows_total, CASE WHEN s.state = 'RUNNING' THEN round(r.average, 1) END AS rows_per_second,
       CASE WHEN s.state = 'RUNNING' AND r.fastest IS NOT NULL
            THEN round(greatest((s.rows_total - s.finished) / r.fastest - epoch_ms(now() - r.last_at) / 1e3, 0), 1)
       END AS seconds_left_low,
       CASE WHEN s.state = 'RUNNING' THEN round(greatest(s.rows_total - s.finished, 0) / r.slowest, 1)
       END AS seconds_left_high,
       s.rate_limit, if(s.state = 'FINISHED', NULL, s.waiting) AS reason,
       if(s.state = 'FINISHED', NULL, s.waiting_since) AS reason_since,
       coalesce(r.last_at, s.initialized_at) AS updated_at
FROM rwc._fragment_status s LEFT JOIN rwc._rates r USING (job_id, fragment_id)
ORDER BY s.job_id, s.fragment_id;

-- Beyond RisingWave: the steps of creating jobs with the rows that each reads: all slices, and the finished steps of a
-- backfill that reads in order. `finished_at` is NULL until a slice is read.
CREATE OR REPLACE VIEW rwc.rw_backfill_steps AS
SELECT job_id::INTEGER AS job_id, rwc._fragment_id(job_id, fragment_id) AS fragment_id, slice_id, coalesce(f.row_count, s.row_count)::BIGINT AS row_count, f.finished_at
FROM (SELECT job_id, fragment_id, slice_id, row_count FROM lake.sparkwave.slices) s
FULL JOIN rwc._steps f USING (job_id, fragment_id, slice_id)
JOIN rwc._creating_jobs j ON j.id = job_id;

-- Beyond RisingWave: how long finished backfills took (catalog/stores/measured_backfills.py). `start_seconds` are those
-- of the resource group, and not in `seconds`.
CREATE OR REPLACE VIEW rwc.rw_measured_backfills AS
SELECT m.job_id::INTEGER AS job_id, r.database AS database_name, r.schema AS schema_name, r.name AS job_name, m.finished_at,
       m.kind AS engine, m.cores, m.row_count::BIGINT AS row_count, m.start_s AS start_seconds, m.seconds
FROM lake.sparkwave.measured_backfills m JOIN lake.sparkwave.relations r ON r.id = m.job_id;

-- Including those being created.
CREATE OR REPLACE VIEW rwc.rw_materialized_views AS
SELECT r.id::INTEGER AS id, r.name, r.schema_id::INTEGER AS schema_id, r.schema AS schema_name,
       r.owner_id::INTEGER AS owner, r.definition, false AS append_only,
       pgf._acl(r.id) AS acl, r.initialized_at, r.created_at,
       NULL::VARCHAR AS initialized_at_cluster_version, NULL::VARCHAR AS created_at_cluster_version,
       coalesce(j.is_background, false) AS background_ddl, if(r.created, 'Created', 'Creating') AS status
FROM pgc._all_relations r
LEFT JOIN lake.sparkwave.jobs j ON j.id = r.id
WHERE r.kind = 'materialized view' AND r.database = pgf.session_database()
  AND (r.created OR coalesce(j.status, '') <> 'FAILED');

-- As in RisingWave, tables and sources are streaming jobs too. Their parallelisms are only recorded; they are in
-- `streaming` (catalog.relation_details.StreamingSettings), which is NULL for relations of earlier versions.
CREATE OR REPLACE VIEW rwc._streaming_jobs AS
SELECT r.id::INTEGER AS id, r.name, r.kind, d.id::INTEGER AS database_id, coalesce(j.status, 'CREATED') AS status,
       coalesce(j.parallelism, r.streaming->>'parallelism', 'adaptive') AS parallelism,
       coalesce((r.streaming->>'max_parallelism')::INTEGER, 256) AS max_parallelism,
       if(j.is_serverless AND j.status = 'INITIAL', 'SERVERLESS_BACKFILL_RESOURCE_GROUP_TBD_FOR_' || j.id,
          coalesce(j.resource_group, d.resource_group)) AS resource_group,
       r.created, r.streaming, s.relation_id IS NOT NULL AS has_source
FROM lake.sparkwave.relations r
JOIN pgc._databases d ON d.name = r.database
LEFT JOIN lake.sparkwave.jobs j ON j.id = r.id
LEFT JOIN lake.sparkwave.sources s ON s.relation_id = r.id
WHERE r.kind IN ('table', 'source') OR (j.id IS NOT NULL AND (j.status <> 'FAILED' OR r.created));

CREATE OR REPLACE VIEW rwc.rw_streaming_jobs AS
SELECT id, name, database_id, status, parallelism, max_parallelism, resource_group FROM rwc._streaming_jobs ORDER BY id;

CREATE OR REPLACE VIEW rwc.rw_streaming_job_info AS
SELECT j.*, d.name AS database_name FROM rwc.rw_streaming_jobs j JOIN pgc._databases d ON d.id = j.database_id;

CREATE OR REPLACE VIEW rwc.rw_streaming_parallelism AS
SELECT id, name, kind AS relation_type, parallelism, max_parallelism FROM rwc._streaming_jobs ORDER BY id;

CREATE OR REPLACE VIEW rwc.rw_table_fragments AS
SELECT id AS table_id, status, parallelism, max_parallelism FROM rwc.rw_streaming_jobs;

-- One row a key that ALTER … SET CONFIG or a session variable has set, with its value in TOML.
CREATE OR REPLACE VIEW rwc.rw_streaming_job_config AS
SELECT id, name, database_id, key, config->>('$."' || key || '"') AS value
FROM (SELECT id, name, database_id, streaming->'config' AS config, unnest(json_keys(streaming->'config')) AS key
      FROM rwc._streaming_jobs WHERE streaming IS NOT NULL)
ORDER BY id, key;

-- The number of workers of a parallelism on some cores, as executor/spark/workers.py has it.
CREATE OR REPLACE MACRO rwc._workers(parallelism, cores) AS
    CASE WHEN parallelism LIKE 'bounded(%' THEN greatest(least(parallelism[9:-2]::INTEGER, cores), 1)
         WHEN parallelism LIKE 'ratio(%' THEN greatest(floor(parallelism[7:-2]::DOUBLE * cores), 1)
         ELSE coalesce(try_cast(parallelism AS INTEGER), cores) END::INTEGER;

CREATE OR REPLACE VIEW rwc._cores AS
SELECT resource_group, sum(replicas * cores)::INTEGER AS cores FROM lake.sparkwave.applications
WHERE state <> 'DESTROYED' GROUP BY resource_group;

-- The fragments that a creating job's progress is counted in. Its backfill parallelism counts, and with a no-shuffle
-- backfill that of the upstream.
CREATE OR REPLACE VIEW rwc._creating_fragments AS
SELECT rwc._fragment_id(p.job_id, p.fragment_id) AS fragment_id, p.job_id::INTEGER AS table_id, 'HASH' AS distribution_type, [t.id] AS state_table_ids,
       []::INTEGER[] AS upstream_fragment_ids,
       if(p.fragment_id = max(p.fragment_id) OVER (PARTITION BY p.job_id), [if(j.kind = 'sink', 'SINK', 'MVIEW')], []) ||
       if(j.is_snapshot, ['STREAM_SCAN', 'SNAPSHOT_BACKFILL_STREAM_SCAN'], ['STREAM_SCAN']) AS flags,
       coalesce(j.backfill_parallelism,
                rwc._workers(if(j.strategy = 'Backfill', coalesce(u.parallelism, 'adaptive'), s.parallelism), coalesce(n.cores, 1)))
           ::INTEGER AS parallelism,
       s.max_parallelism,
       CASE WHEN j.strategy = 'Backfill' THEN 'upstream_fragment([' || p.upstream_id || '])'
            ELSE 'inherit(' || coalesce(j.backfill_parallelism::VARCHAR, s.parallelism) || ')'
       END AS parallelism_policy
FROM rwc._fragment_progress p
JOIN rwc._creating_jobs j ON j.id = p.job_id
JOIN rwc._streaming_jobs s ON s.id = p.job_id
JOIN rwc._backfill_tables t ON t.fragment_id = rwc._fragment_id(p.job_id, p.fragment_id)
LEFT JOIN rwc._streaming_jobs u ON u.id = p.upstream_id
LEFT JOIN rwc._cores n ON n.resource_group = j.resource_group;

-- Internal tables: the states of operators and of backfills, and the logs of sinks that wait for their receivers. They
-- have no ids of their own in the catalog; these are of no other relation, and stay.
CREATE OR REPLACE VIEW rwc._internal_tables AS
SELECT (1500000000 + (s.job_id * 100 + row_number() OVER (PARTITION BY s.job_id ORDER BY s.name)) % 500000000)::INTEGER
           AS id, s.name, s.job_id::INTEGER AS job_id
FROM lake.sparkwave.states s
UNION ALL
SELECT id, name, job_id FROM rwc._backfill_tables;

CREATE OR REPLACE VIEW rwc._states_of AS
SELECT job_id, list(id ORDER BY id) AS ids FROM rwc._internal_tables GROUP BY job_id;

-- The created jobs that each job reads, whose ids are those of their fragments.
CREATE OR REPLACE VIEW rwc._upstreams_of AS
SELECT r.id AS job_id, list(u.id ORDER BY u.id) AS ids
FROM (SELECT id, unnest(upstreams) AS upstream_id FROM lake.sparkwave.relations) r
JOIN rwc._streaming_jobs u ON u.id = r.upstream_id AND u.created
GROUP BY r.id;

-- What is created is one fragment: a table, which statements write, or a job, which one program maintains. It has the id
-- of the relation, so that the ids are unique; those of a creating job have ids of their own.
CREATE OR REPLACE VIEW rwc.rw_fragments AS
FROM rwc._creating_fragments
UNION ALL
SELECT j.id, j.id, 'HASH', coalesce(s.ids, []), coalesce(u.ids, []),
       if(j.has_source, ['SOURCE'], []) ||
       CASE j.kind WHEN 'table' THEN ['DML', 'MVIEW'] WHEN 'source' THEN [] WHEN 'sink' THEN ['SINK'] ELSE ['MVIEW'] END,
       rwc._workers(j.parallelism, coalesce(n.cores, 1)), j.max_parallelism, 'inherit(' || j.parallelism || ')'
FROM rwc._streaming_jobs j
LEFT JOIN rwc._cores n USING (resource_group)
LEFT JOIN rwc._states_of s ON s.job_id = j.id
LEFT JOIN rwc._upstreams_of u ON u.job_id = j.id
WHERE j.created;

CREATE OR REPLACE VIEW rwc.rw_fragment_parallelism AS
SELECT j.id, j.name, j.relation_type, f.* FROM rwc.rw_fragments f JOIN rwc.rw_streaming_parallelism j ON j.id = f.table_id;

CREATE OR REPLACE VIEW rwc.rw_fragment_id_to_ddl AS
SELECT f.fragment_id, f.table_id AS job_id, r.schema_id::INTEGER AS schema_id,
       if(r.kind = 'materialized view', 'mv', r.kind) AS ddl_type, r.name
FROM rwc.rw_fragments f JOIN pgc._all_relations r ON r.id = f.table_id;

-- Only jobs with a limit. A job without fragments yet, because it waits, has its limit in the fragment that it will be.
CREATE OR REPLACE VIEW rwc.rw_rate_limit AS
SELECT coalesce(f.fragment_id, j.id)::INTEGER AS fragment_id, coalesce(f.flags, ['MVIEW', 'STREAM_SCAN']) AS fragment_type,
       'STREAM_SCAN' AS node_name, j.id::INTEGER AS table_id, j.rate_limit::INTEGER AS rate_limit
FROM lake.sparkwave.jobs j LEFT JOIN rwc._creating_fragments f ON f.table_id = j.id
WHERE j.rate_limit IS NOT NULL AND j.status <> 'FAILED'
UNION ALL
SELECT relation_id::INTEGER, ['SOURCE'], 'SOURCE', relation_id::INTEGER, rate_limit::INTEGER
FROM lake.sparkwave.sources WHERE rate_limit IS NOT NULL
UNION ALL
SELECT id, if(has_source, ['SOURCE'], []) || ['DML', 'MVIEW'], 'DML', id, (streaming->>'dml_rate_limit')::INTEGER
FROM rwc._streaming_jobs WHERE kind = 'table' AND (streaming->>'dml_rate_limit') IS NOT NULL
UNION ALL
SELECT id::INTEGER, ['SINK'], 'SINK', id::INTEGER, (details->>'rate_limit')::INTEGER
FROM lake.sparkwave.relations WHERE kind = 'sink' AND (details->>'rate_limit') IS NOT NULL;

-- One row for each living compute node: the executors of the Spark applications.
CREATE OR REPLACE VIEW rwc.rw_worker_nodes AS
SELECT (1000 * id + node)::INTEGER AS id, name || '-' || node AS host, port::VARCHAR AS port,
       'WORKER_TYPE_COMPUTE_NODE' AS type, if(state = 'PROVISIONING', 'STARTING', 'RUNNING') AS state,
       cores AS parallelism, true AS is_streaming, NOT is_serverless AS is_serving, '' AS internal_rpc_host_addr,
       NULL::VARCHAR AS rw_version, memory_bytes AS system_total_memory_bytes, cores::BIGINT AS system_total_cpu_cores,
       started_at, resource_group, false AS is_iceberg_compactor
FROM (SELECT *, unnest(range(replicas)) AS node FROM lake.sparkwave.applications WHERE state <> 'DESTROYED')
ORDER BY id;

-- As many actors for each fragment as its parallelism, in turn on the nodes of its resource group. Without such a node
-- the server computes by itself: worker 0. A job has a thousand ids for its actors.
CREATE OR REPLACE VIEW rwc._actors AS
SELECT ((f.table_id::BIGINT * 1000 + row_number() OVER (PARTITION BY f.table_id ORDER BY f.fragment_id, f.n) - 1)
           % 2147483648)::INTEGER AS actor_id,
       f.fragment_id, coalesce(w.ids[1 + f.n % len(w.ids)], 0)::INTEGER AS worker_id, 'RUNNING' AS state, f.table_id
FROM (SELECT fragment_id, table_id, unnest(range(least(parallelism, 1000))) AS n FROM rwc.rw_fragments) f
JOIN rwc._streaming_jobs j ON j.id = f.table_id
LEFT JOIN (SELECT resource_group, list(id ORDER BY id) AS ids FROM rwc.rw_worker_nodes GROUP BY resource_group) w
    USING (resource_group);

CREATE OR REPLACE VIEW rwc.rw_actors AS
SELECT actor_id, fragment_id, worker_id, state FROM rwc._actors ORDER BY actor_id;

CREATE OR REPLACE VIEW rwc.rw_actor_id_to_ddl AS
SELECT a.actor_id, d.job_id, d.schema_id, d.ddl_type, d.name
FROM rwc._actors a JOIN rwc.rw_fragment_id_to_ddl d ON (d.job_id, d.fragment_id) = (a.table_id, a.fragment_id);

-- With the plan of each created fragment, which the server sets in the variable fragment_plans, as JSON.
CREATE OR REPLACE VIEW rwc._fragment_plans AS
SELECT r.fragment_id, r.node
FROM (SELECT unnest(from_json(coalesce(getvariable('fragment_plans')::VARCHAR, '[]'), '[{
    "fragment_id": "INTEGER", "node": "JSON"}]')) AS r);

CREATE OR REPLACE VIEW rwc.rw_fragment_infos AS
SELECT f.*, p.node FROM rwc.rw_fragments f LEFT JOIN rwc._fragment_plans p USING (fragment_id);

CREATE OR REPLACE VIEW rwc.rw_actor_infos AS
SELECT a.actor_id, a.fragment_id, p.node, '[]'::JSON AS dispatcher
FROM rwc.rw_actors a LEFT JOIN rwc._fragment_plans p USING (fragment_id);

-- Beyond RisingWave: every Spark application, also past ones, with its state since `changed_at` and the reason for it.
CREATE OR REPLACE VIEW rwc.rw_spark_applications AS
SELECT id::INTEGER AS id, name, resource_group, is_serverless, state, replicas, cores, memory_bytes, started_at,
       ready_at, changed_at, reason
FROM lake.sparkwave.applications ORDER BY id;

-- Every group that a node, a database or a job names.
CREATE OR REPLACE VIEW rwc.rw_resource_groups AS
WITH entry AS (
    SELECT resource_group AS name, 1 AS worker, parallelism AS cores, 0 AS database, 0 AS job FROM rwc.rw_worker_nodes
    UNION ALL SELECT resource_group, 0, 0, 1, 0 FROM pgc._databases
    UNION ALL SELECT resource_group, 0, 0, 0, 1 FROM lake.sparkwave.jobs WHERE status <> 'FAILED'
)
SELECT name, sum(worker)::BIGINT AS streaming_workers, sum(cores)::BIGINT AS parallelism,
       sum(database)::BIGINT AS databases, sum(job)::BIGINT AS streaming_jobs
FROM entry GROUP BY name;

CREATE OR REPLACE VIEW rwc.rw_event_logs AS
SELECT md5(concat_ws('/', happened_at, event_type, job_id, info)) AS unique_id, happened_at AS "timestamp", event_type, if(json_valid(info), info, to_json(info))::JSON AS info
FROM lake.sparkwave.events ORDER BY happened_at;

CREATE OR REPLACE VIEW rwc.rw_recovery_info AS
SELECT id::INTEGER AS database_id, name AS database_name, 'RUNNING' AS recovery_state,
       NULL::VARCHAR AS last_database_event,
       (SELECT max_by(event_type, happened_at) FROM lake.sparkwave.events WHERE event_type LIKE 'GLOBAL_RECOVERY_%')
           AS last_global_event, true AS in_global_running,
       false AS in_global_recovering
FROM pgc._databases;

CREATE OR REPLACE VIEW rwc.rw_tables AS
SELECT id::INTEGER AS id, name, schema_id::INTEGER AS schema_id, owner_id::INTEGER AS owner, definition,
       append_only, false AS refreshable, pgf._acl(id) AS acl, initialized_at, created_at,
       NULL::VARCHAR AS initialized_at_cluster_version, NULL::VARCHAR AS created_at_cluster_version
FROM pgc._relations WHERE kind = 'table' AND database = pgf.session_database();

CREATE OR REPLACE VIEW rwc.rw_views AS
SELECT id::INTEGER AS id, name, schema_id::INTEGER AS schema_id, owner_id::INTEGER AS owner, definition,
       pgf._acl(id) AS acl
FROM pgc._relations WHERE kind = 'view' AND database = pgf.session_database();

CREATE OR REPLACE VIEW rwc.rw_subscriptions AS
SELECT id::INTEGER AS id, name, schema_id::INTEGER AS schema_id, schema AS schema_name, owner_id::INTEGER AS owner,
       definition, pgf._acl(id) AS acl, initialized_at, created_at, NULL::VARCHAR AS initialized_at_cluster_version,
       NULL::VARCHAR AS created_at_cluster_version, retention_s AS retention_seconds
FROM pgc._subscriptions WHERE database = pgf.session_database();

CREATE OR REPLACE VIEW rwc.rw_functions AS
SELECT id::INTEGER AS id, name, schema_id::INTEGER AS schema_id, owner_id::INTEGER AS owner,
       CASE WHEN is_aggregate THEN 'aggregate' WHEN returns_set THEN 'table' ELSE 'scalar' END AS type,
       argument_oids::INTEGER[] AS arg_type_ids, result_oid::INTEGER AS return_type_id, language,
       NULL::VARCHAR AS link, pgf._acl(id) AS acl, false AS always_retry_on_network_error
FROM pgc._sql_functions WHERE database = pgf.session_database();
CREATE OR REPLACE VIEW rwc.rw_secrets AS
SELECT s.id::INTEGER AS id, s.name, s.schema_id::INTEGER AS schema_id,
       coalesce((SELECT u.id FROM lake.sparkwave.users u WHERE u.name = s.owner), 1)::INTEGER AS owner,
       []::VARCHAR[] AS acl
FROM lake.sparkwave.secrets s JOIN lake.sparkwave.schemas n ON n.id = s.schema_id
WHERE n.database = pgf.session_database();
CREATE OR REPLACE VIEW rwc.rw_indexes AS
SELECT i.id::INTEGER AS id, i.name, i.relation_id::INTEGER AS primary_table_id, i.key_numbers AS key_columns,
       i.included_numbers AS include_columns, i.schema_id::INTEGER AS schema_id, i.owner_id::INTEGER AS owner,
       i.definition, pgf._acl(i.id) AS acl, i.initialized_at, i.created_at,
       NULL::VARCHAR AS initialized_at_cluster_version, NULL::VARCHAR AS created_at_cluster_version,
       coalesce(j.is_background, false) AS background_ddl
FROM pgc._created_indexes i LEFT JOIN lake.sparkwave.jobs j ON j.id = i.id
WHERE i.database = pgf.session_database();

-- Options as RisingWave shows them (rw_sources.rs, serialize_props_with_secret), without secrets
-- (catalog/source_model.py, SECRET_OPTIONS).
CREATE OR REPLACE MACRO rwc._shown(options, k) AS
    if(regexp_matches(k, 'password|secret|token|key\.pem|credentials'), '***',
       json_extract_string(options, '$."' || k || '"'));
CREATE OR REPLACE MACRO rwc._properties(options) AS
    to_json(map_from_entries(list_transform(json_keys(options), lambda k: struct_pack(
        k := k, v := struct_pack(type := 'plaintext', value := rwc._shown(options, k))))));

-- The options of connections in JSON, as RisingWave shows them (create_connection.rs), without values of secret ones.
CREATE OR REPLACE VIEW rwc._connection_params AS
SELECT id, to_json(map(list(k ORDER BY k), list(v ORDER BY k)))::VARCHAR AS connection_params
FROM (SELECT id, k, rwc._shown(options, k) AS v
      FROM (SELECT id, options, unnest(json_keys(options)) AS k FROM lake.sparkwave.connections)
      UNION ALL
      SELECT c.id, c.k, 'SECRET ' || s.name || ' AS TEXT'
      FROM (SELECT id, secrets, unnest(json_keys(secrets)) AS k FROM lake.sparkwave.connections) c
      JOIN lake.sparkwave.secrets s ON s.id = json_extract_string(c.secrets, '$."' || c.k || '"')::BIGINT)
GROUP BY id;
CREATE OR REPLACE VIEW rwc.rw_connections AS
SELECT c.id::INTEGER AS id, c.name, c.schema_id::INTEGER AS schema_id,
       coalesce((SELECT u.id FROM lake.sparkwave.users u WHERE u.name = c.owner), 1)::INTEGER AS owner,
       'CONNECTION_TYPE_' || upper(c.kind) AS type_, '' AS provider, pgf._acl(c.id) AS acl, p.connection_params
FROM lake.sparkwave.connections c
JOIN lake.sparkwave.schemas n ON n.id = c.schema_id
JOIN rwc._connection_params p ON p.id = c.id
WHERE n.database = pgf.session_database();

-- `sink_type` is as in RisingWave (proto/catalog.proto, SinkType).
CREATE OR REPLACE VIEW rwc.rw_sinks AS
SELECT r.id::INTEGER AS id, r.name, r.schema_id::INTEGER AS schema_id, r.owner_id::INTEGER AS owner,
       r.details->>'connector' AS connector,
       CASE WHEN r.details->>'is_forced' = 'true' THEN 'FORCE_APPEND_ONLY'
            ELSE replace(upper(r.details->>'type'), '-', '_') END AS sink_type,
       (r.details->>'connection')::INTEGER AS connection_id, r.definition, t.name AS target_table_name, pgf._acl(r.id) AS acl,
       r.initialized_at, r.created_at, NULL::VARCHAR AS initialized_at_cluster_version,
       NULL::VARCHAR AS created_at_cluster_version, coalesce(j.is_background, false) AS background_ddl,
       rwc._properties(r.details->'options') AS connector_props,
       if(r.details->>'format' IS NULL, '{}', json_object('encode', r.details->>'format'))::JSON AS format_encode_options
FROM pgc._created_relations r
LEFT JOIN lake.sparkwave.jobs j ON j.id = r.id
LEFT JOIN pgc._relations t ON t.id = (r.details->>'target')::BIGINT
WHERE r.kind = 'sink' AND r.database = pgf.session_database();
-- Sources, and tables that a connector fills; for a table, source and table have one id here.
CREATE OR REPLACE VIEW rwc.rw_sources AS
SELECT r.id::INTEGER AS id, r.name, r.schema_id::INTEGER AS schema_id, r.owner_id::INTEGER AS owner,
       upper(s.connector) AS connector,
       (SELECT list(c.name ORDER BY c.position) FROM pgc._columns c WHERE c.relation_id = r.id) AS columns,
       s.format, s.encode AS row_encode, r.append_only,
       if(r.kind = 'table', r.id, NULL)::INTEGER AS associated_table_id, s.connection_id::INTEGER AS connection_id, r.definition,
       pgf._acl(r.id) AS acl, r.initialized_at, r.created_at,
       NULL::VARCHAR AS initialized_at_cluster_version, NULL::VARCHAR AS created_at_cluster_version,
       false AS is_shared, rwc._properties(s.options) AS connector_props,
       rwc._properties(s.encode_options) AS format_encode_options
FROM lake.sparkwave.sources s JOIN pgc._relations r ON r.id = s.relation_id
WHERE r.database = pgf.session_database();

-- Beyond RisingWave: the position of every source, and the reason why it does not go on.
CREATE OR REPLACE VIEW rwc.rw_source_status AS
SELECT r.id::INTEGER AS source_id, r.schema || '.' || r.name AS source_name, s.connector,
       CASE WHEN s.rate_limit = 0 THEN 'PAUSED' WHEN f.reason IS NOT NULL THEN 'RETRYING'
            WHEN p.is_finished AND s.connector IN ('datagen', 'nexmark') THEN 'FINISHED' ELSE 'RUNNING' END AS state,
       coalesce(p.row_count, 0) || ' rows consumed' AS progress, coalesce(p.row_count, 0)::BIGINT AS rows_consumed,
       coalesce(p.splits, 0) AS splits, coalesce(f.splits, 0) AS failed_splits, s.rate_limit, f.reason,
       f.failed_at AS reason_since, p.updated_at
FROM lake.sparkwave.sources s
JOIN pgc._relations r ON r.id = s.relation_id
LEFT JOIN (SELECT relation_id, sum(row_count)::BIGINT AS row_count, count(*) AS splits,
                  bool_and(is_finished) AS is_finished, max(updated_at) AS updated_at
           FROM lake.sparkwave.source_splits GROUP BY relation_id) p USING (relation_id)
LEFT JOIN (SELECT relation_id, min_by(reason, (failed_at, split)) AS reason, min(failed_at) AS failed_at,
                  count(*) AS splits
           FROM lake.sparkwave.source_failures GROUP BY relation_id) f USING (relation_id)
WHERE r.database = pgf.session_database();

-- The same for each file, or for a generator's only split.
CREATE OR REPLACE VIEW rwc.rw_source_splits AS
SELECT r.id::INTEGER AS source_id, r.schema || '.' || r.name AS source_name, split, p.position,
       coalesce(p.row_count, 0)::BIGINT AS rows_consumed, coalesce(p.is_finished, false) AS is_finished, f.reason,
       f.failed_at AS reason_since, p.updated_at
FROM lake.sparkwave.source_splits p
FULL JOIN lake.sparkwave.source_failures f USING (relation_id, split)
JOIN pgc._relations r ON r.id = relation_id
WHERE r.database = pgf.session_database();

-- A table of a PostgreSQL is read as one split.
CREATE OR REPLACE VIEW rwc.rw_cdc_progress AS
SELECT s.relation_id::INTEGER AS job_id, 1::BIGINT AS split_total_count,
       coalesce(p.is_finished, false)::BIGINT AS split_backfilled_count,
       coalesce(p.is_finished, false)::BIGINT AS split_completed_count
FROM lake.sparkwave.sources s
LEFT JOIN lake.sparkwave.source_splits p ON p.relation_id = s.relation_id AND p.split = 'snapshot'
WHERE s.connector = 'postgres-cdc' AND json_extract_string(s.options, '$."table.name"') IS NOT NULL;

CREATE OR REPLACE VIEW rwc.rw_relations AS
SELECT id, name, 'table' AS relation_type, schema_id, owner, definition, acl FROM rwc.rw_tables
UNION ALL SELECT id, name, 'view', schema_id, owner, definition, acl FROM rwc.rw_views
UNION ALL SELECT id, name, 'materialized view', schema_id, owner, definition, acl FROM rwc.rw_materialized_views
UNION ALL SELECT id, name, 'subscription', schema_id, owner, definition, acl FROM rwc.rw_subscriptions
UNION ALL SELECT id, name, 'index', schema_id, owner, definition, acl FROM rwc.rw_indexes
UNION ALL SELECT id, name, 'sink', schema_id, owner, definition, acl FROM rwc.rw_sinks
UNION ALL SELECT id, name, 'source', schema_id, owner, definition, acl FROM rwc.rw_sources WHERE associated_table_id IS NULL
UNION ALL SELECT id::INTEGER, name, 'system table', schema_id::INTEGER, 1::INTEGER, NULL, []::VARCHAR[] FROM pgc._system_relations;

CREATE OR REPLACE VIEW rwc.rw_columns AS
SELECT c.relation_id::INTEGER AS relation_id, c.name,
       row_number() OVER (PARTITION BY c.relation_id ORDER BY c.position)::INTEGER AS position, c.is_hidden,
       c.is_key AS is_primary_key, c.is_key AS is_distribution_key,
       c.generated IS NOT NULL AS is_generated, NOT c.not_null AS is_nullable, c.generated AS generation_expression, c.type AS data_type,
       c.type_oid::INTEGER AS type_oid, c.length AS type_len, t.typname AS udt_type
FROM pgc._columns c
JOIN pgc._created_relations r ON r.id = c.relation_id
LEFT JOIN pgc._all_types t ON t.oid = c.type_oid
WHERE r.database = pgf.session_database()
UNION ALL
-- The time of the commit that wrote a row, which no table stores.
SELECT r.id::INTEGER, '_rw_timestamp', (count(*) + 1)::INTEGER, true, false, false, false, true, NULL,
       'timestamp with time zone', 1184, 8, 'timestamptz'
FROM pgc._created_relations r LEFT JOIN pgc._columns c ON c.relation_id = r.id
WHERE r.database = pgf.session_database() AND r.kind = 'table' GROUP BY r.id;

CREATE OR REPLACE VIEW rwc.rw_table_stats AS
SELECT __oid::INTEGER AS id, __rows::BIGINT AS total_key_count, 0::BIGINT AS total_key_size,
       __bytes::BIGINT AS total_value_size
FROM pgf._size;

CREATE OR REPLACE VIEW rwc.rw_depend AS
SELECT id::INTEGER AS objid, unnest(upstreams)::INTEGER AS refobjid FROM pgc._created_relations
UNION ALL
SELECT id::INTEGER, (details->>'target')::INTEGER FROM pgc._created_relations WHERE details->>'target' IS NOT NULL
UNION ALL
SELECT id::INTEGER, (details->>'connection')::INTEGER FROM pgc._created_relations
WHERE details->>'connection' IS NOT NULL
UNION ALL
SELECT relation_id::INTEGER, connection_id::INTEGER FROM lake.sparkwave.sources WHERE connection_id IS NOT NULL;

-- Beyond RisingWave: where rows come from and go to, one row for each pair, also of relations that are being created. A
-- sink into a table goes to the table; a relation over a view has the view and what the view reads.
CREATE OR REPLACE VIEW rwc.rw_lineage AS
SELECT from_id::INTEGER AS from_id, id::INTEGER AS to_id
FROM (SELECT id, unnest(upstreams) AS from_id FROM pgc._all_relations WHERE database = pgf.session_database())
UNION
SELECT id::INTEGER, (details->>'target')::INTEGER FROM pgc._all_relations
WHERE details->>'target' IS NOT NULL AND database = pgf.session_database();

CREATE OR REPLACE VIEW rwc.rw_schemas AS
SELECT oid::INTEGER AS id, nspname AS name, nspowner::INTEGER AS owner, pgf._acl(oid) AS acl FROM pgc.pg_namespace;

CREATE OR REPLACE VIEW rwc.rw_databases AS
SELECT id::INTEGER AS id, name, coalesce((SELECT r.id FROM pgc._roles r WHERE r.name = owner), 1)::INTEGER AS owner,
       pgf._acl(id) AS acl, resource_group, barrier_interval_ms, checkpoint_frequency
FROM pgc._databases;

CREATE OR REPLACE VIEW rwc.rw_users AS
SELECT id::INTEGER AS id, name, is_super, create_db, create_user, can_login FROM pgc._roles;

CREATE OR REPLACE VIEW rwc.rw_system_tables AS
SELECT id::INTEGER AS id, name, schema_id::INTEGER AS schema_id, 1::INTEGER AS owner, NULL::VARCHAR AS definition,
       []::VARCHAR[] AS acl
FROM pgc._system_relations;

CREATE OR REPLACE VIEW rwc.rw_internal_tables AS
SELECT i.id, i.name, r.schema_id::INTEGER AS schema_id, r.owner_id::INTEGER AS owner, '' AS definition,
       []::VARCHAR[] AS acl, r.initialized_at, r.created_at, NULL::VARCHAR AS initialized_at_cluster_version,
       NULL::VARCHAR AS created_at_cluster_version, i.job_id
FROM rwc._internal_tables i JOIN pgc._all_relations r ON r.id = i.job_id
WHERE r.database = pgf.session_database();

CREATE OR REPLACE VIEW rwc.rw_internal_table_info AS
SELECT i.id, i.name, i.job_id, r.name AS job_name, r.kind AS job_type, r.schema AS schema_name, r.owner
FROM rwc.rw_internal_tables i JOIN pgc._all_relations r ON r.id = i.job_id;

-- Kinds of objects that do not exist here.
CREATE OR REPLACE TABLE rwc.rw_types (
    id INTEGER, name VARCHAR, input_oid VARCHAR, typelem INTEGER, typarray INTEGER
);

-- Comments.
CREATE OR REPLACE VIEW rwc.rw_description AS
SELECT objoid::INTEGER AS objoid, classoid::INTEGER AS classoid, objsubid, description FROM pgc.pg_description;
-- SHOW CLUSTER.
CREATE OR REPLACE VIEW rwc._show_cluster AS
SELECT id AS "Id", host || ':' || port AS "Addr", type AS "Type", state AS "State", parallelism AS "Parallelism",
       is_streaming AS "Is Streaming", is_serving AS "Is Serving", started_at AS "Started At"
FROM rwc.rw_worker_nodes;

-- SHOW INDEXES.
CREATE OR REPLACE VIEW rwc._show_indexes AS
SELECT relation_schema AS schema, relation_name AS relation, name AS "Name", relation_name AS "On",
       array_to_string(shown, ', ') AS "Key", array_to_string(included, ', ') AS "Include",
       array_to_string(distributed, ', ') AS "Distributed By"
FROM pgc._created_indexes WHERE database = pgf.session_database();

-- DESCRIBE, and SHOW COLUMNS FROM, which is its first part: columns, then keys, indexes and comment.
CREATE OR REPLACE VIEW rwc._describe AS
WITH relation AS (FROM pgc._created_relations WHERE database = pgf.session_database())
SELECT r.schema, r.name AS relation, c.position::INTEGER AS place, true AS is_column, c.name AS "Name",
       if(c.is_hidden AND c.name = '_row_id', 'serial', c.type) AS "Type", c.is_hidden::VARCHAR AS "Is Hidden", pgf.col_description(r.id, if(c.is_hidden, -1, c.attnum)) AS "Description"
FROM pgc._columns c JOIN relation r ON r.id = c.relation_id
UNION ALL
SELECT schema, name, 99999, true, '_rw_timestamp', 'timestamp with time zone', 'true', NULL FROM relation WHERE kind = 'table'
UNION ALL
SELECT schema, name, 100000, false, 'primary key', array_to_string(key, ', '), NULL, NULL FROM relation WHERE kind <> 'view'
UNION ALL
SELECT schema, name, 100001, false, 'distribution key', array_to_string(key, ', '), NULL, NULL
FROM relation WHERE kind <> 'view'
UNION ALL
SELECT schema, relation, 100002, false, "Name", 'index(' || "Key" || ')' || if("Include" = '', '', ' include(' || "Include" || ')')
       || ' distributed by(' || "Distributed By" || ')', NULL, NULL
FROM rwc._show_indexes
UNION ALL
SELECT r.schema, r.name, 100003, false, 'target table name', t.name, NULL, NULL
FROM relation r JOIN pgc._relations t ON t.id = (r.details->>'target')::BIGINT
UNION ALL
SELECT schema, name, 100004, false, 'table description', name, NULL, pgf.obj_description(id, 'pg_class') FROM relation
UNION ALL
SELECT s.schema, s.name, c.attnum, true, c.name, t.name, 'false', NULL
FROM pgc._system_columns c
JOIN pgc._system_relations s ON s.id = c.relation_id
JOIN pgc._all_types t ON t.oid = c.type_oid;
