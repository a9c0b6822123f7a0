"""Numbered steps that bring Sparkwave's own relations up to date. Append steps; never edit a released one."""

from __future__ import annotations

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE lake.sparkwave.relations (
        id BIGINT, database VARCHAR, schema VARCHAR, name VARCHAR,
        kind VARCHAR,                     -- 'table' or 'materialized view'
        definition VARCHAR,               -- the statement that made it, normalised
        key VARCHAR[],                    -- stream key
        upstreams BIGINT[],
        created BOOLEAN,                  -- false while its job is creating it
        owner VARCHAR,
        initialized_at TIMESTAMPTZ, created_at TIMESTAMPTZ
    );
    CREATE TABLE lake.sparkwave.columns (
        relation_id BIGINT, position INTEGER, name VARCHAR, type VARCHAR, is_hidden BOOLEAN, not_null BOOLEAN
    );
    CREATE TABLE lake.sparkwave.jobs (
        id BIGINT, status VARCHAR, is_background BOOLEAN, is_serverless BOOLEAN, resource_group VARCHAR,
        strategy VARCHAR, snapshot BIGINT, error VARCHAR
    );
    -- One row a slice, written when the backfill is planned; what a fragment still has to read.
    CREATE TABLE lake.sparkwave.slices (
        job_id BIGINT, fragment_id INTEGER, slice_id INTEGER, upstream_id BIGINT, input VARCHAR,
        row_id_from BIGINT, row_id_to BIGINT, row_count BIGINT
    );
    -- One row a finished slice, inserted by the transaction that registers its files.
    CREATE TABLE lake.sparkwave.finished_slices (
        job_id BIGINT, fragment_id INTEGER, slice_id INTEGER, row_count BIGINT, finished_at TIMESTAMPTZ
    );
    -- Internal tables: the state of operators inside a job's plan.
    CREATE TABLE lake.sparkwave.states (job_id BIGINT, name VARCHAR);
    -- A single row: the snapshot that every created view has applied.
    CREATE TABLE lake.sparkwave.epoch (snapshot BIGINT);
    INSERT INTO lake.sparkwave.epoch VALUES (0);
    CREATE TABLE lake.sparkwave.schemas (id BIGINT, database VARCHAR, name VARCHAR, owner VARCHAR);
    CREATE TABLE lake.sparkwave.parameters (name VARCHAR, value VARCHAR);
    CREATE TABLE lake.sparkwave.nodes (
        id BIGINT, name VARCHAR, host VARCHAR, port INTEGER, state VARCHAR, resource_group VARCHAR,
        cores INTEGER, memory_bytes BIGINT, started_at TIMESTAMPTZ
    );
    CREATE TABLE lake.sparkwave.events (happened_at TIMESTAMPTZ, event_type VARCHAR, job_id BIGINT, info VARCHAR);
    CREATE TABLE lake.sparkwave.identifiers (next_id BIGINT);
    INSERT INTO lake.sparkwave.identifiers VALUES (1001);
    INSERT INTO lake.sparkwave.schemas VALUES (1000, 'dev', 'public', 'root');
    CREATE SCHEMA lake."dev.public"
    """,
    # Append-only tables, and watermarks.
    """
    ALTER TABLE lake.sparkwave.relations ADD COLUMN append_only BOOLEAN;
    ALTER TABLE lake.sparkwave.relations ADD COLUMN watermark_column VARCHAR;
    ALTER TABLE lake.sparkwave.relations ADD COLUMN watermark_delay_us BIGINT;
    UPDATE lake.sparkwave.relations SET append_only = false
    """,
    """
    -- The time that goes with the snapshot, in microseconds: what now() is in views, and in one being created.
    ALTER TABLE lake.sparkwave.epoch ADD COLUMN time_us BIGINT;
    UPDATE lake.sparkwave.epoch SET time_us = epoch_us(now());
    ALTER TABLE lake.sparkwave.jobs ADD COLUMN time_us BIGINT
    """,
    # Control of creating jobs, and their positions in their upstreams.
    """
    ALTER TABLE lake.sparkwave.jobs ADD COLUMN rate_limit BIGINT;
    ALTER TABLE lake.sparkwave.jobs ADD COLUMN parallelism VARCHAR;
    ALTER TABLE lake.sparkwave.jobs ADD COLUMN backfill_parallelism INTEGER;
    ALTER TABLE lake.sparkwave.jobs ADD COLUMN backfill_order BIGINT[][];  -- pairs of upstream ids: before, after
    ALTER TABLE lake.sparkwave.jobs ADD COLUMN waiting VARCHAR;            -- why a creating job does not move
    UPDATE lake.sparkwave.jobs SET parallelism = 'adaptive', backfill_order = [];
    -- A range of row ids of an input that a NoShuffle or Arrangement backfill reads in order: those below `position`
    -- are read. `row_total` is the rows in the range when the job started.
    CREATE TABLE lake.sparkwave.positions (
        job_id BIGINT, fragment_id INTEGER, upstream_id BIGINT, input VARCHAR, vnode INTEGER,
        row_id_from BIGINT, row_id_to BIGINT, position BIGINT, row_total BIGINT
    )
    """,
    # Resource groups of databases and views, and the Spark applications.
    """
    ALTER TABLE lake.sparkwave.jobs ADD COLUMN specific_group VARCHAR;  -- asked for by WITH or ALTER
    ALTER TABLE lake.sparkwave.jobs ADD COLUMN waiting_since TIMESTAMPTZ;
    CREATE TABLE lake.sparkwave.databases (id BIGINT, name VARCHAR, owner VARCHAR, resource_group VARCHAR);
    INSERT INTO lake.sparkwave.databases VALUES (1, 'dev', 'root', 'default');
    -- One row an application; its nodes, of so many cores and so much memory each, are named after it.
    CREATE TABLE lake.sparkwave.applications (
        id BIGINT, name VARCHAR, resource_group VARCHAR, is_serverless BOOLEAN, state VARCHAR, port INTEGER,
        replicas INTEGER, cores INTEGER, memory_bytes BIGINT, reason VARCHAR,
        started_at TIMESTAMPTZ, ready_at TIMESTAMPTZ, changed_at TIMESTAMPTZ
    );
    DROP TABLE lake.sparkwave.nodes
    """,
    # Users and their privileges. Every user may connect, and look up relations in the existing schemas.
    """
    CREATE TABLE lake.sparkwave.users (
        id BIGINT, name VARCHAR, is_super BOOLEAN, create_db BOOLEAN, create_user BOOLEAN, can_login BOOLEAN,
        verifier VARCHAR                  -- SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey; NULL without a password
    );
    INSERT INTO lake.sparkwave.users VALUES
        (1, 'root', true, true, true, true, NULL), (2, 'postgres', true, true, true, true, NULL);
    CREATE TABLE lake.sparkwave.grants (
        object_id BIGINT,                 -- of a database, a schema or a relation
        grantee VARCHAR, privilege VARCHAR, grantor VARCHAR, is_grantable BOOLEAN
    );
    INSERT INTO lake.sparkwave.grants
    SELECT id, 'public', 'CONNECT', owner, false FROM lake.sparkwave.databases
    UNION ALL SELECT id, 'public', 'USAGE', owner, false FROM lake.sparkwave.schemas
    """,
    # A relation may be renamed or moved; its lake table keeps its first name.
    """
    ALTER TABLE lake.sparkwave.relations ADD COLUMN lake_schema VARCHAR;
    ALTER TABLE lake.sparkwave.relations ADD COLUMN lake_name VARCHAR;
    UPDATE lake.sparkwave.relations SET lake_schema = database || '.' || schema, lake_name = name;
    -- Of a database, a schema or a relation, or of a column of one.
    CREATE TABLE lake.sparkwave.comments (object_id BIGINT, column_name VARCHAR, text VARCHAR)
    """,
    # The SQL of a column's default.
    "ALTER TABLE lake.sparkwave.columns ADD COLUMN column_default VARCHAR",
    # Subscriptions, and SQL functions.
    """
    CREATE TABLE lake.sparkwave.subscriptions (relation_id BIGINT, retention_s BIGINT, snapshot BIGINT);
    CREATE TABLE lake.sparkwave.functions (
        id BIGINT, database VARCHAR, schema VARCHAR, name VARCHAR, owner VARCHAR,
        argument_names VARCHAR[], argument_types VARCHAR[], result_type VARCHAR,
        body VARCHAR,                     -- an expression
        definition VARCHAR
    )
    """,
    # Altered columns: see `catalog.model.Column`. NULL stands for an unaltered column.
    """
    ALTER TABLE lake.sparkwave.columns ADD COLUMN generated VARCHAR;
    ALTER TABLE lake.sparkwave.columns ADD COLUMN lake_name VARCHAR;
    ALTER TABLE lake.sparkwave.columns ADD COLUMN since BIGINT;
    ALTER TABLE lake.sparkwave.columns ADD COLUMN former_names VARCHAR[];
    ALTER TABLE lake.sparkwave.columns ADD COLUMN former_until BIGINT[];
    -- What an INSERT does with a key that is there.
    ALTER TABLE lake.sparkwave.relations ADD COLUMN conflict VARCHAR;
    ALTER TABLE lake.sparkwave.relations ADD COLUMN version_columns VARCHAR[];
    UPDATE lake.sparkwave.relations SET conflict = if(append_only, 'ignore', 'overwrite');
    -- What the lake called columns that are gone: no other gets such a name, under which files still have the old one.
    ALTER TABLE lake.sparkwave.relations ADD COLUMN dropped_columns VARCHAR[];
    -- A view's definition as clients see it, where that is not the stored one.
    ALTER TABLE lake.sparkwave.relations ADD COLUMN shown VARCHAR
    """,
    # The details of an index or a sink, as JSON; and the snapshot whose rows a creating sink has delivered.
    """
    ALTER TABLE lake.sparkwave.relations ADD COLUMN details VARCHAR;
    ALTER TABLE lake.sparkwave.jobs ADD COLUMN delivered BIGINT
    """,
    # Sources, and the position up to which each of their splits has been read.
    """
    CREATE TABLE lake.sparkwave.sources (
        relation_id BIGINT, connector VARCHAR, options VARCHAR, format VARCHAR, encode VARCHAR, encode_options VARCHAR,
        includes VARCHAR, rate_limit BIGINT  -- options and includes are JSON
    );
    CREATE TABLE lake.sparkwave.source_splits (
        relation_id BIGINT, split VARCHAR, position BIGINT, row_count BIGINT, is_finished BOOLEAN,
        updated_at TIMESTAMPTZ
    );
    -- Why a source, or one of its splits, does not go on.
    CREATE TABLE lake.sparkwave.source_failures (
        relation_id BIGINT, split VARCHAR, reason VARCHAR, failed_at TIMESTAMPTZ
    )
    """,
    # Members of roles, privileges on single columns, and expiring passwords.
    """
    CREATE TABLE lake.sparkwave.memberships (role VARCHAR, member VARCHAR, grantor VARCHAR, is_admin BOOLEAN);
    ALTER TABLE lake.sparkwave.grants ADD COLUMN column_name VARCHAR;
    ALTER TABLE lake.sparkwave.users ADD COLUMN valid_until TIMESTAMPTZ
    """,
    # ALTER MATERIALIZED VIEW … AS: see `catalog.model.Relation`.
    """
    ALTER TABLE lake.sparkwave.relations ADD COLUMN replaces BIGINT;
    ALTER TABLE lake.sparkwave.relations ADD COLUMN defined_by BIGINT
    """,
    # Sealed secrets, and the options of a source that refer to them (JSON, by id).
    """
    CREATE TABLE lake.sparkwave.secrets (id BIGINT, schema_id BIGINT, name VARCHAR, owner VARCHAR, value VARCHAR);
    ALTER TABLE lake.sparkwave.sources ADD COLUMN secrets VARCHAR
    """,
    # The row id up to which a creating sink has delivered its rows into a table.
    """
    ALTER TABLE lake.sparkwave.jobs ADD COLUMN deliver_from BIGINT
    """,
    # The version of the planner that first planned a relation: see `planner.plan.rules`.
    """
    ALTER TABLE lake.sparkwave.relations ADD COLUMN planner INTEGER
    """,
    # The position of a created job that is behind the others: see `catalog.model.Job`.
    """
    ALTER TABLE lake.sparkwave.jobs ADD COLUMN views_at BIGINT
    """,
    # The plan's requirements on the stored state: see `planner.plan.fingerprint`.
    """
    ALTER TABLE lake.sparkwave.relations ADD COLUMN fingerprint VARCHAR
    """,
    # Rows in which an expression of a view failed: see `catalog.stores.compute_errors`.
    """
    CREATE TABLE lake.sparkwave.compute_errors (
        relation_id BIGINT, row_count BIGINT, message VARCHAR, failed_at TIMESTAMPTZ
    )
    """,
    # The reserved numbers of sequences, so that none repeats after a crash: see `catalog.stores.sequence_store`.
    """
    CREATE TABLE lake.sparkwave.sequences (relation_id BIGINT, last_value BIGINT, is_called BOOLEAN)
    """,
    # The users' types, in the form of `catalog.types.Type.stored`.
    """
    CREATE TABLE lake.sparkwave.types (
        id BIGINT, database VARCHAR, schema VARCHAR, name VARCHAR, owner VARCHAR, type VARCHAR, labels VARCHAR[],
        field_names VARCHAR[], field_oids BIGINT[], domain VARCHAR  -- of `catalog.relation_details.Domain`, as JSON
    )
    """,
    # The streaming settings of a table, source or job, in the form of `catalog.relation_details.dump_settings`.
    """
    ALTER TABLE lake.sparkwave.relations ADD COLUMN streaming VARCHAR
    """,
    # What a database has of its own instead of the system parameters of these names.
    """
    ALTER TABLE lake.sparkwave.databases ADD COLUMN barrier_interval_ms INTEGER;
    ALTER TABLE lake.sparkwave.databases ADD COLUMN checkpoint_frequency BIGINT
    """,
    # Privileges on objects to come: see `catalog.users.DefaultGrant`. Everybody may call the functions there are.
    """
    CREATE TABLE lake.sparkwave.default_grants (
        database_id BIGINT, role VARCHAR, schema_id BIGINT, kind VARCHAR, grantee VARCHAR, privilege VARCHAR,
        is_grantable BOOLEAN, is_revoked BOOLEAN
    );
    INSERT INTO lake.sparkwave.grants (object_id, grantee, privilege, grantor, is_grantable)
    SELECT id, 'public', 'EXECUTE', owner, false FROM lake.sparkwave.functions
    """,
    # The checksums of views' rows, and the results of audits: see `catalog.stores.view_checksums` and `view_audits`.
    """
    CREATE TABLE lake.sparkwave.view_checksums (
        relation_id BIGINT, checksum UBIGINT, row_count BIGINT, version VARCHAR
    );
    CREATE TABLE lake.sparkwave.view_audits (
        relation_id BIGINT, started_at TIMESTAMPTZ, seconds DOUBLE, snapshot BIGINT, result VARCHAR, engine VARCHAR,
        checksum VARCHAR, row_count BIGINT, detail VARCHAR, evidence VARCHAR
    )
    """,
    # Connections, and the sources that use one: see `catalog.model.Connection`. Options and secrets are JSON.
    """
    CREATE TABLE lake.sparkwave.connections (
        id BIGINT, schema_id BIGINT, name VARCHAR, owner VARCHAR, kind VARCHAR, options VARCHAR, secrets VARCHAR
    );
    ALTER TABLE lake.sparkwave.sources ADD COLUMN connection_id BIGINT
    """,
    # How long finished backfills took: see `catalog.stores.measured_backfills`. `work` is JSON.
    """
    CREATE TABLE lake.sparkwave.measured_backfills (
        job_id BIGINT, finished_at TIMESTAMPTZ, kind VARCHAR, cores INTEGER, row_count BIGINT, start_s DOUBLE,
        seconds DOUBLE, work VARCHAR
    )
    """,
    # Functions in Python: see `catalog.model.Function`. NULL stands for a SQL function.
    """
    ALTER TABLE lake.sparkwave.functions ADD COLUMN language VARCHAR;
    ALTER TABLE lake.sparkwave.functions ADD COLUMN is_strict BOOLEAN
    """,
    # Functions that return rows, and aggregates: see `catalog.model.Function`. NULL stands for a function of one value.
    """
    ALTER TABLE lake.sparkwave.functions ADD COLUMN column_names VARCHAR[];
    ALTER TABLE lake.sparkwave.functions ADD COLUMN is_aggregate BOOLEAN
    """,
    # When rows were written: the times of expired snapshots, and, of rows that compaction moved, the snapshots that
    # wrote them: see `catalog.lake.row_times`.
    """
    CREATE TABLE lake.sparkwave.commit_times (snapshot BIGINT, time_us BIGINT);
    CREATE TABLE lake.sparkwave.moved_rows (
        table_schema VARCHAR, table_name VARCHAR, snapshot BIGINT, row_from BIGINT, row_to BIGINT, written BIGINT
    )
    """,
)
