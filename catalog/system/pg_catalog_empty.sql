-- pg_catalog: relations about kinds of objects that do not exist here, with the columns that clients name.

-- Parts of relations.
CREATE OR REPLACE TABLE pgc.pg_inherits (
    inhrelid UINTEGER, inhparent UINTEGER, inhseqno INTEGER, inhdetachpending BOOLEAN
);
CREATE OR REPLACE TABLE pgc.pg_partitioned_table (
    partrelid UINTEGER, partstrat VARCHAR, partnatts SMALLINT, partdefid UINTEGER, partattrs SMALLINT[],
    partclass UINTEGER[], partcollation UINTEGER[], partexprs VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_trigger (
    oid UINTEGER, tgrelid UINTEGER, tgparentid UINTEGER, tgname VARCHAR, tgfoid UINTEGER, tgtype SMALLINT,
    tgenabled VARCHAR, tgisinternal BOOLEAN, tgconstrrelid UINTEGER, tgconstrindid UINTEGER, tgconstraint
    UINTEGER, tgdeferrable BOOLEAN, tginitdeferred BOOLEAN, tgnargs SMALLINT, tgattr SMALLINT[], tgargs BLOB,
    tgqual VARCHAR, tgoldtable VARCHAR, tgnewtable VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_policy (
    oid UINTEGER, polname VARCHAR, polrelid UINTEGER, polcmd VARCHAR, polpermissive BOOLEAN, polroles
    UINTEGER[], polqual VARCHAR, polwithcheck VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_policies (
    schemaname VARCHAR, tablename VARCHAR, policyname VARCHAR, permissive VARCHAR, roles VARCHAR[], cmd VARCHAR,
    qual VARCHAR, with_check VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_rules (
    schemaname VARCHAR, tablename VARCHAR, rulename VARCHAR, definition VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_statistic_ext (
    oid UINTEGER, stxrelid UINTEGER, stxname VARCHAR, stxnamespace UINTEGER, stxowner UINTEGER, stxstattarget
    INTEGER, stxkeys SMALLINT[], stxkind VARCHAR[], stxexprs VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_stats (
    schemaname VARCHAR, tablename VARCHAR, attname VARCHAR, inherited BOOLEAN, null_frac FLOAT, avg_width
    INTEGER, n_distinct FLOAT, most_common_vals VARCHAR, most_common_freqs FLOAT[], histogram_bounds VARCHAR,
    correlation FLOAT, most_common_elems VARCHAR, most_common_elem_freqs FLOAT[], elem_count_histogram FLOAT[]
);
CREATE OR REPLACE TABLE pgc.pg_seclabel (
    objoid UINTEGER, classoid UINTEGER, objsubid INTEGER, provider VARCHAR, label VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_seclabels (
    objoid UINTEGER, classoid UINTEGER, objsubid INTEGER, objtype VARCHAR, objnamespace UINTEGER, objname
    VARCHAR, provider VARCHAR, label VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_shdepend (
    dbid UINTEGER, classid UINTEGER, objid UINTEGER, objsubid INTEGER, refclassid UINTEGER, refobjid UINTEGER,
    deptype VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_statistic (
    starelid UINTEGER, staattnum SMALLINT, stainherit BOOLEAN, stanullfrac FLOAT, stawidth INTEGER, stadistinct
    FLOAT, stakind1 SMALLINT, stakind2 SMALLINT, stakind3 SMALLINT, stakind4 SMALLINT, stakind5 SMALLINT, staop1
    UINTEGER, staop2 UINTEGER, staop3 UINTEGER, staop4 UINTEGER, staop5 UINTEGER, stacoll1 UINTEGER, stacoll2
    UINTEGER, stacoll3 UINTEGER, stacoll4 UINTEGER, stacoll5 UINTEGER, stanumbers1 FLOAT[], stanumbers2 FLOAT[],
    stanumbers3 FLOAT[], stanumbers4 FLOAT[], stanumbers5 FLOAT[], stavalues1 VARCHAR, stavalues2 VARCHAR,
    stavalues3 VARCHAR, stavalues4 VARCHAR, stavalues5 VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_statistic_ext_data (
    stxoid UINTEGER, stxdinherit BOOLEAN, stxdndistinct VARCHAR, stxddependencies VARCHAR, stxdmcv VARCHAR,
    stxdexpr VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_stats_ext (
    schemaname VARCHAR, tablename VARCHAR, statistics_schemaname VARCHAR, statistics_name VARCHAR,
    statistics_owner VARCHAR, attnames VARCHAR[], exprs VARCHAR[], kinds VARCHAR[], inherited BOOLEAN,
    n_distinct VARCHAR, dependencies VARCHAR, most_common_vals VARCHAR[], most_common_val_nulls BOOLEAN[],
    most_common_freqs DOUBLE[], most_common_base_freqs DOUBLE[]
);
CREATE OR REPLACE TABLE pgc.pg_stats_ext_exprs (
    schemaname VARCHAR, tablename VARCHAR, statistics_schemaname VARCHAR, statistics_name VARCHAR,
    statistics_owner VARCHAR, expr VARCHAR, inherited BOOLEAN, null_frac FLOAT, avg_width INTEGER, n_distinct
    FLOAT, most_common_vals VARCHAR, most_common_freqs FLOAT[], histogram_bounds VARCHAR, correlation FLOAT,
    most_common_elems VARCHAR, most_common_elem_freqs FLOAT[], elem_count_histogram FLOAT[]
);
CREATE OR REPLACE TABLE pgc.pg_shseclabel (
    objoid UINTEGER, classoid UINTEGER, provider VARCHAR, label VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_init_privs (
    objoid UINTEGER, classoid UINTEGER, objsubid INTEGER, privtype VARCHAR, initprivs VARCHAR[]
);

-- Types, operators, functions.
CREATE OR REPLACE TABLE pgc.pg_range (
    rngtypid UINTEGER, rngsubtype UINTEGER, rngmultitypid UINTEGER, rngcollation UINTEGER, rngsubopc UINTEGER,
    rngcanonical VARCHAR, rngsubdiff VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_aggregate (
    aggfnoid VARCHAR, aggkind VARCHAR, aggnumdirectargs SMALLINT, aggtransfn VARCHAR, aggfinalfn VARCHAR,
    aggcombinefn VARCHAR, aggserialfn VARCHAR, aggdeserialfn VARCHAR, aggmtransfn VARCHAR, aggminvtransfn
    VARCHAR, aggmfinalfn VARCHAR, aggfinalextra BOOLEAN, aggmfinalextra BOOLEAN, aggfinalmodify VARCHAR,
    aggmfinalmodify VARCHAR, aggsortop UINTEGER, aggtranstype UINTEGER, aggtransspace INTEGER, aggmtranstype
    UINTEGER, aggmtransspace INTEGER, agginitval VARCHAR, aggminitval VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_operator (
    oid UINTEGER, oprname VARCHAR, oprnamespace UINTEGER, oprowner UINTEGER, oprkind VARCHAR, oprcanmerge
    BOOLEAN, oprcanhash BOOLEAN, oprleft UINTEGER, oprright UINTEGER, oprresult UINTEGER, oprcom UINTEGER,
    oprnegate UINTEGER, oprcode VARCHAR, oprrest VARCHAR, oprjoin VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_amop (
    oid UINTEGER, amopfamily UINTEGER, amoplefttype UINTEGER, amoprighttype UINTEGER, amopstrategy SMALLINT,
    amoppurpose VARCHAR, amopopr UINTEGER, amopmethod UINTEGER, amopsortfamily UINTEGER
);
CREATE OR REPLACE TABLE pgc.pg_amproc (
    oid UINTEGER, amprocfamily UINTEGER, amproclefttype UINTEGER, amprocrighttype UINTEGER, amprocnum SMALLINT,
    amproc VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_conversion (
    oid UINTEGER, conname VARCHAR, connamespace UINTEGER, conowner UINTEGER, conforencoding INTEGER,
    contoencoding INTEGER, conproc VARCHAR, condefault BOOLEAN
);
CREATE OR REPLACE TABLE pgc.pg_ts_config (
    oid UINTEGER, cfgname VARCHAR, cfgnamespace UINTEGER, cfgowner UINTEGER, cfgparser UINTEGER
);
CREATE OR REPLACE TABLE pgc.pg_ts_config_map (
    mapcfg UINTEGER, maptokentype INTEGER, mapseqno INTEGER, mapdict UINTEGER
);
CREATE OR REPLACE TABLE pgc.pg_ts_dict (
    oid UINTEGER, dictname VARCHAR, dictnamespace UINTEGER, dictowner UINTEGER, dicttemplate UINTEGER,
    dictinitoption VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_ts_parser (
    oid UINTEGER, prsname VARCHAR, prsnamespace UINTEGER, prsstart VARCHAR, prstoken VARCHAR, prsend VARCHAR,
    prsheadline VARCHAR, prslextype VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_ts_template (
    oid UINTEGER, tmplname VARCHAR, tmplnamespace UINTEGER, tmplinit VARCHAR, tmpllexize VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_transform (
    oid UINTEGER, trftype UINTEGER, trflang UINTEGER, trffromsql VARCHAR, trftosql VARCHAR
);

-- Roles, servers, replication.
CREATE OR REPLACE TABLE pgc.pg_db_role_setting (
    setdatabase UINTEGER, setrole UINTEGER, setconfig VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_event_trigger (
    oid UINTEGER, evtname VARCHAR, evtevent VARCHAR, evtowner UINTEGER, evtfoid UINTEGER, evtenabled VARCHAR,
    evttags VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_extension (
    oid UINTEGER, extname VARCHAR, extowner UINTEGER, extnamespace UINTEGER, extrelocatable BOOLEAN, extversion
    VARCHAR, extconfig UINTEGER[], extcondition VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_available_extensions (
    name VARCHAR, default_version VARCHAR, installed_version VARCHAR, comment VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_foreign_data_wrapper (
    oid UINTEGER, fdwname VARCHAR, fdwowner UINTEGER, fdwhandler UINTEGER, fdwvalidator UINTEGER, fdwacl
    VARCHAR[], fdwoptions VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_foreign_server (
    oid UINTEGER, srvname VARCHAR, srvowner UINTEGER, srvfdw UINTEGER, srvtype VARCHAR, srvversion VARCHAR,
    srvacl VARCHAR[], srvoptions VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_foreign_table (
    ftrelid UINTEGER, ftserver UINTEGER, ftoptions VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_user_mapping (
    oid UINTEGER, umuser UINTEGER, umserver UINTEGER, umoptions VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_user_mappings (
    umid UINTEGER, srvid UINTEGER, srvname VARCHAR, umuser UINTEGER, usename VARCHAR, umoptions VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_publication (
    oid UINTEGER, pubname VARCHAR, pubowner UINTEGER, puballtables BOOLEAN, pubinsert BOOLEAN, pubupdate
    BOOLEAN, pubdelete BOOLEAN, pubtruncate BOOLEAN, pubviaroot BOOLEAN
);
CREATE OR REPLACE TABLE pgc.pg_publication_rel (
    oid UINTEGER, prpubid UINTEGER, prrelid UINTEGER, prqual VARCHAR, prattrs SMALLINT[]
);
CREATE OR REPLACE TABLE pgc.pg_publication_namespace (
    oid UINTEGER, pnpubid UINTEGER, pnnspid UINTEGER
);
CREATE OR REPLACE TABLE pgc.pg_publication_tables (
    pubname VARCHAR, schemaname VARCHAR, tablename VARCHAR, attnames VARCHAR[], rowfilter VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_subscription (
    oid UINTEGER, subdbid UINTEGER, subskiplsn VARCHAR, subname VARCHAR, subowner UINTEGER, subenabled BOOLEAN,
    subbinary BOOLEAN, substream BOOLEAN, subtwophasestate VARCHAR, subdisableonerr BOOLEAN, subconninfo
    VARCHAR, subslotname VARCHAR, subsynccommit VARCHAR, subpublications VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_subscription_rel (
    srsubid UINTEGER, srrelid UINTEGER, srsubstate VARCHAR, srsublsn VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_replication_slots (
    slot_name VARCHAR, plugin VARCHAR, slot_type VARCHAR, datoid UINTEGER, database VARCHAR, temporary BOOLEAN,
    active BOOLEAN, active_pid INTEGER, xmin UINTEGER, catalog_xmin UINTEGER, restart_lsn VARCHAR,
    confirmed_flush_lsn VARCHAR, wal_status VARCHAR, safe_wal_size BIGINT, two_phase BOOLEAN
);
CREATE OR REPLACE TABLE pgc.pg_largeobject_metadata (
    oid UINTEGER, lomowner UINTEGER, lomacl VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_available_extension_versions (
    name VARCHAR, version VARCHAR, installed BOOLEAN, superuser BOOLEAN, trusted BOOLEAN, relocatable BOOLEAN,
    schema VARCHAR, requires VARCHAR[], comment VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_largeobject (
    loid UINTEGER, pageno INTEGER, data BLOB
);
CREATE OR REPLACE TABLE pgc.pg_parameter_acl (
    oid UINTEGER, parname VARCHAR, paracl VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_replication_origin (
    roident UINTEGER, roname VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_replication_origin_status (
    local_id UINTEGER, external_id VARCHAR, remote_lsn VARCHAR, local_lsn VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_file_settings (
    sourcefile VARCHAR, sourceline INTEGER, seqno INTEGER, name VARCHAR, setting VARCHAR, applied BOOLEAN, error
    VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_hba_file_rules (
    line_number INTEGER, type VARCHAR, database VARCHAR[], user_name VARCHAR[], address VARCHAR, netmask
    VARCHAR, auth_method VARCHAR, options VARCHAR[], error VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_ident_file_mappings (
    line_number INTEGER, map_name VARCHAR, sys_name VARCHAR, pg_username VARCHAR, error VARCHAR
);

-- The state of sessions.
CREATE OR REPLACE TABLE pgc.pg_stat_replication (
    pid INTEGER, usesysid UINTEGER, usename VARCHAR, application_name VARCHAR, client_addr VARCHAR,
    client_hostname VARCHAR, client_port INTEGER, backend_start TIMESTAMPTZ, backend_xmin UINTEGER, state
    VARCHAR, sent_lsn VARCHAR, write_lsn VARCHAR, flush_lsn VARCHAR, replay_lsn VARCHAR, write_lag INTERVAL,
    flush_lag INTERVAL, replay_lag INTERVAL, sync_priority INTEGER, sync_state VARCHAR, reply_time TIMESTAMPTZ
);
CREATE OR REPLACE TABLE pgc.pg_stat_user_indexes (
    relid UINTEGER, indexrelid UINTEGER, schemaname VARCHAR, relname VARCHAR, indexrelname VARCHAR, idx_scan
    BIGINT, idx_tup_read BIGINT, idx_tup_fetch BIGINT
);
CREATE OR REPLACE TABLE pgc.pg_stat_ssl (
    pid INTEGER, ssl BOOLEAN, version VARCHAR, cipher VARCHAR, bits INTEGER, client_dn VARCHAR, client_serial
    DECIMAL(38,10), issuer_dn VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_locks (
    locktype VARCHAR, database UINTEGER, relation UINTEGER, page INTEGER, tuple SMALLINT, virtualxid VARCHAR,
    transactionid UINTEGER, classid UINTEGER, objid UINTEGER, objsubid SMALLINT, virtualtransaction VARCHAR, pid
    INTEGER, mode VARCHAR, granted BOOLEAN, fastpath BOOLEAN, waitstart TIMESTAMPTZ
);
CREATE OR REPLACE TABLE pgc.pg_prepared_xacts (
    transaction UINTEGER, gid VARCHAR, prepared TIMESTAMPTZ, owner VARCHAR, database VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_timezone_names (
    name VARCHAR, abbrev VARCHAR, utc_offset INTERVAL, is_dst BOOLEAN
);
CREATE OR REPLACE TABLE pgc.pg_timezone_abbrevs (
    abbrev VARCHAR, utc_offset INTERVAL, is_dst BOOLEAN
);
CREATE OR REPLACE TABLE pgc.pg_stat_all_indexes (
    relid UINTEGER, indexrelid UINTEGER, schemaname VARCHAR, relname VARCHAR, indexrelname VARCHAR, idx_scan
    BIGINT, idx_tup_read BIGINT, idx_tup_fetch BIGINT
);
CREATE OR REPLACE TABLE pgc.pg_stat_gssapi (
    pid INTEGER, gss_authenticated BOOLEAN, principal VARCHAR, encrypted BOOLEAN
);
CREATE OR REPLACE TABLE pgc.pg_stat_sys_indexes (
    relid UINTEGER, indexrelid UINTEGER, schemaname VARCHAR, relname VARCHAR, indexrelname VARCHAR, idx_scan
    BIGINT, idx_tup_read BIGINT, idx_tup_fetch BIGINT
);
CREATE OR REPLACE TABLE pgc.pg_stat_sys_tables (
    relid UINTEGER, schemaname VARCHAR, relname VARCHAR, seq_scan BIGINT, seq_tup_read BIGINT, idx_scan BIGINT,
    idx_tup_fetch BIGINT, n_tup_ins BIGINT, n_tup_upd BIGINT, n_tup_del BIGINT, n_tup_hot_upd BIGINT, n_live_tup
    BIGINT, n_dead_tup BIGINT, n_mod_since_analyze BIGINT, n_ins_since_vacuum BIGINT, last_vacuum TIMESTAMPTZ,
    last_autovacuum TIMESTAMPTZ, last_analyze TIMESTAMPTZ, last_autoanalyze TIMESTAMPTZ, vacuum_count BIGINT,
    autovacuum_count BIGINT, analyze_count BIGINT, autoanalyze_count BIGINT
);
CREATE OR REPLACE TABLE pgc.pg_stat_user_functions (
    funcid UINTEGER, schemaname VARCHAR, funcname VARCHAR, calls BIGINT, total_time DOUBLE, self_time DOUBLE
);
CREATE OR REPLACE TABLE pgc.pg_stat_subscription (
    subid UINTEGER, subname VARCHAR, pid INTEGER, relid UINTEGER, received_lsn VARCHAR, last_msg_send_time
    TIMESTAMPTZ, last_msg_receipt_time TIMESTAMPTZ, latest_end_lsn VARCHAR, latest_end_time TIMESTAMPTZ
);
CREATE OR REPLACE TABLE pgc.pg_stat_wal_receiver (
    pid INTEGER, status VARCHAR, receive_start_lsn VARCHAR, receive_start_tli INTEGER, written_lsn VARCHAR,
    flushed_lsn VARCHAR, received_tli INTEGER, last_msg_send_time TIMESTAMPTZ, last_msg_receipt_time
    TIMESTAMPTZ, latest_end_lsn VARCHAR, latest_end_time TIMESTAMPTZ, slot_name VARCHAR, sender_host VARCHAR,
    sender_port INTEGER, conninfo VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_stat_replication_slots (
    slot_name VARCHAR, spill_txns BIGINT, spill_count BIGINT, spill_bytes BIGINT, stream_txns BIGINT,
    stream_count BIGINT, stream_bytes BIGINT, total_txns BIGINT, total_bytes BIGINT, stats_reset TIMESTAMPTZ
);
CREATE OR REPLACE TABLE pgc.pg_stat_progress_analyze (
    pid INTEGER, datid UINTEGER, datname VARCHAR, relid UINTEGER, phase VARCHAR, sample_blks_total BIGINT,
    sample_blks_scanned BIGINT, ext_stats_total BIGINT, ext_stats_computed BIGINT, child_tables_total BIGINT,
    child_tables_done BIGINT, current_child_table_relid UINTEGER
);
CREATE OR REPLACE TABLE pgc.pg_stat_progress_basebackup (
    pid INTEGER, phase VARCHAR, backup_total BIGINT, backup_streamed BIGINT, tablespaces_total BIGINT,
    tablespaces_streamed BIGINT
);
CREATE OR REPLACE TABLE pgc.pg_stat_progress_cluster (
    pid INTEGER, datid UINTEGER, datname VARCHAR, relid UINTEGER, command VARCHAR, phase VARCHAR,
    cluster_index_relid UINTEGER, heap_tuples_scanned BIGINT, heap_tuples_written BIGINT, heap_blks_total
    BIGINT, heap_blks_scanned BIGINT, index_rebuild_count BIGINT
);
CREATE OR REPLACE TABLE pgc.pg_stat_progress_copy (
    pid INTEGER, datid UINTEGER, datname VARCHAR, relid UINTEGER, command VARCHAR, type VARCHAR, bytes_processed
    BIGINT, bytes_total BIGINT, tuples_processed BIGINT, tuples_excluded BIGINT
);
CREATE OR REPLACE TABLE pgc.pg_stat_progress_create_index (
    pid INTEGER, datid UINTEGER, datname VARCHAR, relid UINTEGER, index_relid UINTEGER, command VARCHAR, phase
    VARCHAR, lockers_total BIGINT, lockers_done BIGINT, current_locker_pid BIGINT, blocks_total BIGINT,
    blocks_done BIGINT, tuples_total BIGINT, tuples_done BIGINT, partitions_total BIGINT, partitions_done BIGINT
);
CREATE OR REPLACE TABLE pgc.pg_stat_progress_vacuum (
    pid INTEGER, datid UINTEGER, datname VARCHAR, relid UINTEGER, phase VARCHAR, heap_blks_total BIGINT,
    heap_blks_scanned BIGINT, heap_blks_vacuumed BIGINT, index_vacuum_count BIGINT, max_dead_tuples BIGINT,
    num_dead_tuples BIGINT
);
CREATE OR REPLACE TABLE pgc.pg_statio_user_indexes (
    relid UINTEGER, indexrelid UINTEGER, schemaname VARCHAR, relname VARCHAR, indexrelname VARCHAR,
    idx_blks_read BIGINT, idx_blks_hit BIGINT
);
CREATE OR REPLACE TABLE pgc.pg_statio_user_sequences (
    relid UINTEGER, schemaname VARCHAR, relname VARCHAR, blks_read BIGINT, blks_hit BIGINT
);
