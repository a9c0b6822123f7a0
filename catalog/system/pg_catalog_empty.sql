-- pg_catalog: relations about things that do not exist here, with the columns clients name.

-- Parts of relations.
CREATE OR REPLACE TABLE pgc.pg_attrdef (
    oid UINTEGER, adrelid UINTEGER, adnum SMALLINT, adbin VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_inherits (
    inhrelid UINTEGER, inhparent UINTEGER, inhseqno INTEGER, inhdetachpending BOOLEAN
);
CREATE OR REPLACE TABLE pgc.pg_partitioned_table (
    partrelid UINTEGER, partstrat VARCHAR, partnatts SMALLINT, partdefid UINTEGER, partattrs SMALLINT[],
    partclass UINTEGER[], partcollation UINTEGER[], partexprs VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_sequence (
    seqrelid UINTEGER, seqtypid UINTEGER, seqstart BIGINT, seqincrement BIGINT, seqmax BIGINT, seqmin BIGINT,
    seqcache BIGINT, seqcycle BOOLEAN
);
CREATE OR REPLACE TABLE pgc.pg_sequences (
    schemaname VARCHAR, sequencename VARCHAR, sequenceowner VARCHAR, data_type VARCHAR, start_value BIGINT,
    min_value BIGINT, max_value BIGINT, increment_by BIGINT, cycle BOOLEAN, cache_size BIGINT, last_value BIGINT
);
CREATE OR REPLACE TABLE pgc.pg_trigger (
    oid UINTEGER, tgrelid UINTEGER, tgparentid UINTEGER, tgname VARCHAR, tgfoid UINTEGER, tgtype SMALLINT,
    tgenabled VARCHAR, tgisinternal BOOLEAN, tgconstrrelid UINTEGER, tgconstrindid UINTEGER, tgconstraint UINTEGER,
    tgdeferrable BOOLEAN, tginitdeferred BOOLEAN, tgnargs SMALLINT, tgattr SMALLINT[], tgargs VARCHAR,
    tgqual VARCHAR, tgoldtable VARCHAR, tgnewtable VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_policy (
    oid UINTEGER, polname VARCHAR, polrelid UINTEGER, polcmd VARCHAR, polpermissive BOOLEAN, polroles UINTEGER[],
    polqual VARCHAR, polwithcheck VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_policies (
    schemaname VARCHAR, tablename VARCHAR, policyname VARCHAR, permissive VARCHAR, roles VARCHAR[], cmd VARCHAR,
    qual VARCHAR, with_check VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_rules (
    schemaname VARCHAR, tablename VARCHAR, rulename VARCHAR, definition VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_statistic_ext (
    oid UINTEGER, stxrelid UINTEGER, stxname VARCHAR, stxnamespace UINTEGER, stxowner UINTEGER,
    stxstattarget INTEGER, stxkeys SMALLINT[], stxkind VARCHAR[], stxexprs VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_stats (
    schemaname VARCHAR, tablename VARCHAR, attname VARCHAR, inherited BOOLEAN, null_frac DOUBLE, avg_width INTEGER,
    n_distinct DOUBLE, most_common_vals VARCHAR[], most_common_freqs DOUBLE[], histogram_bounds VARCHAR[],
    correlation DOUBLE
);
CREATE OR REPLACE TABLE pgc.pg_description (
    objoid UINTEGER, classoid UINTEGER, objsubid INTEGER, description VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_shdescription (
    objoid UINTEGER, classoid UINTEGER, description VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_seclabel (
    objoid UINTEGER, classoid UINTEGER, objsubid INTEGER, provider VARCHAR, label VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_seclabels (
    objoid UINTEGER, classoid UINTEGER, objsubid INTEGER, objtype VARCHAR, objnamespace UINTEGER, objname VARCHAR,
    provider VARCHAR, label VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_shdepend (
    dbid UINTEGER, classid UINTEGER, objid UINTEGER, objsubid INTEGER, refclassid UINTEGER, refobjid UINTEGER,
    deptype VARCHAR
);

-- Types, operators, functions.
CREATE OR REPLACE TABLE pgc.pg_enum (
    oid UINTEGER, enumtypid UINTEGER, enumsortorder DOUBLE, enumlabel VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_range (
    rngtypid UINTEGER, rngsubtype UINTEGER, rngmultitypid UINTEGER, rngcollation UINTEGER, rngsubopc UINTEGER,
    rngcanonical VARCHAR, rngsubdiff VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_aggregate (
    aggfnoid UINTEGER, aggkind VARCHAR, aggnumdirectargs SMALLINT, aggtransfn VARCHAR, aggfinalfn VARCHAR,
    aggcombinefn VARCHAR, aggsortop UINTEGER, aggtranstype UINTEGER, aggtransspace INTEGER, agginitval VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_operator (
    oid UINTEGER, oprname VARCHAR, oprnamespace UINTEGER, oprowner UINTEGER, oprkind VARCHAR, oprcanmerge BOOLEAN,
    oprcanhash BOOLEAN, oprleft UINTEGER, oprright UINTEGER, oprresult UINTEGER, oprcom UINTEGER,
    oprnegate UINTEGER, oprcode UINTEGER, oprrest UINTEGER, oprjoin UINTEGER
);
CREATE OR REPLACE TABLE pgc.pg_opclass (
    oid UINTEGER, opcmethod UINTEGER, opcname VARCHAR, opcnamespace UINTEGER, opcowner UINTEGER, opcfamily UINTEGER,
    opcintype UINTEGER, opcdefault BOOLEAN, opckeytype UINTEGER
);
CREATE OR REPLACE TABLE pgc.pg_opfamily (
    oid UINTEGER, opfmethod UINTEGER, opfname VARCHAR, opfnamespace UINTEGER, opfowner UINTEGER
);
CREATE OR REPLACE TABLE pgc.pg_amop (
    oid UINTEGER, amopfamily UINTEGER, amoplefttype UINTEGER, amoprighttype UINTEGER, amopstrategy SMALLINT,
    amoppurpose VARCHAR, amopopr UINTEGER, amopmethod UINTEGER, amopsortfamily UINTEGER
);
CREATE OR REPLACE TABLE pgc.pg_amproc (
    oid UINTEGER, amprocfamily UINTEGER, amproclefttype UINTEGER, amprocrighttype UINTEGER, amprocnum SMALLINT,
    amproc UINTEGER
);
CREATE OR REPLACE TABLE pgc.pg_cast (
    oid UINTEGER, castsource UINTEGER, casttarget UINTEGER, castfunc UINTEGER, castcontext VARCHAR,
    castmethod VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_conversion (
    oid UINTEGER, conname VARCHAR, connamespace UINTEGER, conowner UINTEGER, conforencoding INTEGER,
    contoencoding INTEGER, conproc UINTEGER, condefault BOOLEAN
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
    oid UINTEGER, prsname VARCHAR, prsnamespace UINTEGER, prsstart UINTEGER, prstoken UINTEGER, prsend UINTEGER,
    prsheadline UINTEGER, prslextype UINTEGER
);
CREATE OR REPLACE TABLE pgc.pg_ts_template (
    oid UINTEGER, tmplname VARCHAR, tmplnamespace UINTEGER, tmplinit UINTEGER, tmpllexize UINTEGER
);

-- Roles, servers, replication.
CREATE OR REPLACE TABLE pgc.pg_auth_members (
    roleid UINTEGER, member UINTEGER, grantor UINTEGER, admin_option BOOLEAN
);
CREATE OR REPLACE TABLE pgc.pg_group (
    groname VARCHAR, grosysid UINTEGER, grolist UINTEGER[]
);
CREATE OR REPLACE TABLE pgc.pg_default_acl (
    oid UINTEGER, defaclrole UINTEGER, defaclnamespace UINTEGER, defaclobjtype VARCHAR, defaclacl VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_db_role_setting (
    setdatabase UINTEGER, setrole UINTEGER, setconfig VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_event_trigger (
    oid UINTEGER, evtname VARCHAR, evtevent VARCHAR, evtowner UINTEGER, evtfoid UINTEGER, evtenabled VARCHAR,
    evttags VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_extension (
    oid UINTEGER, extname VARCHAR, extowner UINTEGER, extnamespace UINTEGER, extrelocatable BOOLEAN,
    extversion VARCHAR, extconfig UINTEGER[], extcondition VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_available_extensions (
    name VARCHAR, default_version VARCHAR, installed_version VARCHAR, comment VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_foreign_data_wrapper (
    oid UINTEGER, fdwname VARCHAR, fdwowner UINTEGER, fdwhandler UINTEGER, fdwvalidator UINTEGER, fdwacl VARCHAR[],
    fdwoptions VARCHAR[]
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
    oid UINTEGER, pubname VARCHAR, pubowner UINTEGER, puballtables BOOLEAN, pubinsert BOOLEAN, pubupdate BOOLEAN,
    pubdelete BOOLEAN, pubtruncate BOOLEAN, pubviaroot BOOLEAN
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
    subbinary BOOLEAN, substream BOOLEAN, subtwophasestate VARCHAR, subdisableonerr BOOLEAN, subconninfo VARCHAR,
    subslotname VARCHAR, subsynccommit VARCHAR, subpublications VARCHAR[]
);
CREATE OR REPLACE TABLE pgc.pg_subscription_rel (
    srsubid UINTEGER, srrelid UINTEGER, srsubstate VARCHAR, srsublsn VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_replication_slots (
    slot_name VARCHAR, plugin VARCHAR, slot_type VARCHAR, datoid UINTEGER, database VARCHAR, temporary BOOLEAN,
    active BOOLEAN, active_pid INTEGER, restart_lsn VARCHAR, confirmed_flush_lsn VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_largeobject_metadata (
    oid UINTEGER, lomowner UINTEGER, lomacl VARCHAR[]
);

-- What sessions are doing.
CREATE OR REPLACE TABLE pgc.pg_stat_replication (
    pid INTEGER, usesysid UINTEGER, usename VARCHAR, application_name VARCHAR, client_addr VARCHAR, state VARCHAR,
    sent_lsn VARCHAR, write_lsn VARCHAR, flush_lsn VARCHAR, replay_lsn VARCHAR, sync_priority INTEGER,
    sync_state VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_stat_user_indexes (
    relid UINTEGER, indexrelid UINTEGER, schemaname VARCHAR, relname VARCHAR, indexrelname VARCHAR, idx_scan BIGINT,
    idx_tup_read BIGINT, idx_tup_fetch BIGINT
);
CREATE OR REPLACE TABLE pgc.pg_stat_ssl (
    pid INTEGER, ssl BOOLEAN, version VARCHAR, cipher VARCHAR, bits INTEGER, client_dn VARCHAR,
    client_serial BIGINT, issuer_dn VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_locks (
    locktype VARCHAR, database UINTEGER, relation UINTEGER, page INTEGER, tuple SMALLINT, virtualxid VARCHAR,
    transactionid BIGINT, classid UINTEGER, objid UINTEGER, objsubid SMALLINT, virtualtransaction VARCHAR,
    pid INTEGER, mode VARCHAR, granted BOOLEAN, fastpath BOOLEAN, waitstart TIMESTAMPTZ
);
CREATE OR REPLACE TABLE pgc.pg_prepared_xacts (
    transaction BIGINT, gid VARCHAR, prepared TIMESTAMPTZ, owner VARCHAR, database VARCHAR
);
CREATE OR REPLACE TABLE pgc.pg_timezone_names (
    name VARCHAR, abbrev VARCHAR, utc_offset VARCHAR, is_dst BOOLEAN
);
CREATE OR REPLACE TABLE pgc.pg_timezone_abbrevs (
    abbrev VARCHAR, utc_offset VARCHAR, is_dst BOOLEAN
);
