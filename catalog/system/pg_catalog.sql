-- pg_catalog: the relations with rows. Columns and their order are PostgreSQL 15's; OID columns are UINTEGER, name,
-- text, "char", aclitem and pg_node_tree columns VARCHAR, int2vector SMALLINT[].

-- Schemas of the session's database and of the system.
CREATE OR REPLACE VIEW pgc.pg_namespace AS
SELECT id AS oid, name AS nspname, coalesce((SELECT r.id FROM pgc._roles r WHERE r.name = owner), 1)::UINTEGER AS nspowner,
       pgf._granted(id) AS nspacl
FROM pgc._namespaces WHERE database = pgf.session_database()
UNION ALL
SELECT id::UINTEGER, name, 1::UINTEGER, NULL FROM pgc._system_namespaces;

-- Tables, views, materialized views, indexes of their keys, and the system's relations. Sinks have no kind, as in
-- RisingWave, so that clients do not take one for what they could read.
CREATE OR REPLACE VIEW pgc.pg_class AS
WITH class AS (
    SELECT id, name, schema_id, owner_id, CASE kind WHEN 'table' THEN 'r' WHEN 'source' THEN 's' WHEN 'view' THEN 'v' ELSE 'm' END AS kind,
           if(kind = 'view', 0, 2) AS access_method,
           (SELECT count(*) FROM pgc._columns c WHERE c.relation_id = r.id AND NOT c.is_hidden) AS columns,
           EXISTS (FROM pgc._indexes i WHERE i.relation_id = r.id) AS has_index,
           if(kind = 'view', 'n', 'd') AS identity, NULL::UINTEGER AS table_id
    FROM pgc._relations r WHERE database = pgf.session_database()
    UNION ALL
    SELECT id, name, schema_id, owner_id, 'i', 403, len(attnums), false, 'n', relation_id
    FROM pgc._indexes WHERE database = pgf.session_database()
    UNION ALL
    SELECT id, name, schema_id, owner_id, 'S', 0, 0, false, 'n', NULL
    FROM pgc._sequences WHERE database = pgf.session_database()
    UNION ALL
    SELECT id, name, schema_id, owner_id, NULL, 0, 0, false, 'n', NULL
    FROM pgc._created_relations WHERE kind = 'sink' AND database = pgf.session_database()
    UNION ALL
    SELECT relation_oid, name, schema_id, owner_id, 'c', 0, len(field_names), false, 'n', NULL
    FROM pgc._user_types WHERE len(field_names) > 0 AND database = pgf.session_database()
    UNION ALL
    SELECT id, name, schema_id, 1, kind, if(kind = 'r', 2, 0),
           (SELECT count(*) FROM pgc._system_columns c WHERE c.relation_id = r.id), false, 'n', NULL
    FROM pgc._system_relations r
)
SELECT id::UINTEGER AS oid, name AS relname, schema_id::UINTEGER AS relnamespace,
       if(kind = 'c', id - 2, 0)::UINTEGER AS reltype, 0::UINTEGER AS reloftype,
       owner_id::UINTEGER AS relowner, access_method::UINTEGER AS relam,
       id::UINTEGER AS relfilenode,
       0::UINTEGER AS reltablespace,
       -- An index has the numbers of its table.
       coalesce(ceil(pgf._sizes()[coalesce(table_id, id)].bytes / 8192), 0)::INTEGER AS relpages,
       if(kind = 'v', 0, coalesce(pgf._sizes()[coalesce(table_id, id)]."rows", -1))::FLOAT AS reltuples, 0::INTEGER AS relallvisible,
       0::UINTEGER AS reltoastrelid, has_index AS relhasindex, false AS relisshared,
       if(schema_id IN (SELECT id FROM pgc._namespaces WHERE starts_with(name, 'pg_temp_')), 't', 'p') AS relpersistence,
       kind AS relkind, columns::SMALLINT AS relnatts,
       (SELECT count(*) FROM pgc._checks c WHERE c.relation_id = class.id)::SMALLINT AS relchecks,
       kind IN ('v', 'm') AS relhasrules,
       -- Where psql looks for foreign keys.
       id IN (SELECT relation_id FROM pgc._foreign_keys UNION ALL SELECT parent_id FROM pgc._foreign_keys) AS relhastriggers,
       false AS relhassubclass, false AS relrowsecurity, false AS relforcerowsecurity,
       true AS relispopulated, identity AS relreplident, false AS relispartition, 0::UINTEGER AS relrewrite,
       0::UINTEGER AS relfrozenxid, 0::UINTEGER AS relminmxid, pgf._granted(id) AS relacl,
       NULL::VARCHAR[] AS reloptions,
       NULL::VARCHAR AS relpartbound,
       -- PostgreSQL 12 removed it; sqlalchemy-risingwave still reads it.
       false AS relhasoids
FROM class;

-- Visible columns of tables and views, of their indexes, and of the system's relations.
CREATE OR REPLACE VIEW pgc.pg_attribute AS
WITH attribute AS (
    SELECT relation_id, attnum, name, type_oid, typmod, length, dimensions, not_null,
           coalesce(default_text, generated) IS NOT NULL AS has_default, generated IS NOT NULL AS is_generated, identity,
           acl
    FROM pgc._columns WHERE NOT is_hidden AND relation_kind <> 'sink'
    UNION ALL
    SELECT i.id, list_position(i.attnums, c.attnum), c.name, c.type_oid, c.typmod, c.length, c.dimensions, false, false, false,
           NULL, NULL
    FROM pgc._indexes i
    JOIN pgc._columns c ON c.relation_id = i.relation_id AND list_contains(i.attnums, c.attnum)
    WHERE i.constraint_id IS NOT NULL  -- the first part has the other indexes
    UNION ALL
    SELECT relation_id, attnum, name, type_oid, -1, length, dimensions, false, false, false, NULL, NULL
    FROM pgc._system_columns
    UNION ALL
    SELECT relation_oid, place, name, oid, -1, length, 0, false, false, false, NULL, NULL
    FROM pgc._user_type_fields WHERE database = pgf.session_database()
)
SELECT a.relation_id AS attrelid, a.name AS attname, a.type_oid AS atttypid, (-1)::INTEGER AS attstattarget,
       a.length AS attlen, a.attnum::SMALLINT AS attnum, a.dimensions::INTEGER AS attndims, (-1)::INTEGER AS attcacheoff,
       a.typmod AS atttypmod, t.by_value AS attbyval, t.align AS attalign, CASE WHEN a.length >= 0 THEN 'p' WHEN t.typname = 'numeric' THEN 'm' ELSE 'x' END AS attstorage,
       '' AS attcompression, a.not_null AS attnotnull, a.has_default AS atthasdef, false AS atthasmissing,
       CASE a.identity WHEN 'ALWAYS' THEN 'a' WHEN 'BY DEFAULT' THEN 'd' ELSE '' END AS attidentity,
       if(a.is_generated, 's', '') AS attgenerated, false AS attisdropped, true AS attislocal, 0::INTEGER AS attinhcount,
       if(t.category = 'S', 100, 0)::UINTEGER AS attcollation, a.acl AS attacl, NULL::VARCHAR[] AS attoptions,
       NULL::VARCHAR[] AS attfdwoptions, NULL::VARCHAR AS attmissingval
FROM attribute a LEFT JOIN pgc._all_types t ON t.oid = a.type_oid;

-- Defaults, and the expressions of generated columns, as the text that pg_get_expr returns.
CREATE OR REPLACE VIEW pgc.pg_attrdef AS
SELECT (3000000000 + row_number() OVER (ORDER BY relation_id, attnum))::UINTEGER AS oid, relation_id AS adrelid,
       attnum AS adnum, coalesce(default_text, generated) AS adbin
FROM pgc._columns WHERE coalesce(default_text, generated) IS NOT NULL;

-- Types and array types.
CREATE OR REPLACE VIEW pgc.pg_type AS
SELECT oid, typname, 11::UINTEGER AS typnamespace, 1::UINTEGER AS typowner, length AS typlen, by_value AS typbyval,
       kind AS typtype, category AS typcategory, is_preferred AS typispreferred, true AS typisdefined,
       ',' AS typdelim, 0::UINTEGER AS typrelid, if(element_oid <> 0, 'array_subscript_handler', '-') AS typsubscript,
       element_oid AS typelem, array_oid AS typarray, input AS typinput,
       regexp_replace(input, 'in$', 'out') AS typoutput, receive AS typreceive,
       regexp_replace(receive, 'recv$', 'send') AS typsend, '-' AS typmodin, '-' AS typmodout, '-' AS typanalyze,
       align AS typalign, CASE WHEN length >= 0 THEN 'p' WHEN typname = 'numeric' THEN 'm' ELSE 'x' END AS typstorage, false AS typnotnull, 0::UINTEGER AS typbasetype,
       (-1)::INTEGER AS typtypmod, 0::INTEGER AS typndims, if(category = 'S', 100, 0)::UINTEGER AS typcollation,
       NULL::VARCHAR AS typdefaultbin, NULL::VARCHAR AS typdefault, NULL::VARCHAR[] AS typacl
FROM pgc._all_types
UNION ALL
SELECT * EXCLUDE (database) FROM pgc._user_type_rows WHERE database = pgf.session_database();

-- Labels of enums. Their OIDs are unique among all objects.
CREATE OR REPLACE VIEW pgc.pg_enum AS
SELECT id AS oid, type_oid AS enumtypid, place AS enumsortorder, label AS enumlabel
FROM pgc._labels WHERE database = pgf.session_database();

-- The default operator classes of B-trees, under PostgreSQL 15's OIDs.
CREATE OR REPLACE TABLE pgc.pg_opclass AS
SELECT oid::UINTEGER AS oid, 403::UINTEGER AS opcmethod, opcname, 11::UINTEGER AS opcnamespace, 1::UINTEGER AS opcowner,
       opcfamily::UINTEGER AS opcfamily, opcintype::UINTEGER AS opcintype, true AS opcdefault, 0::UINTEGER AS opckeytype
FROM (VALUES
    (1978, 'int4_ops', 1976, 23), (1979, 'int2_ops', 1976, 21), (1981, 'oid_ops', 1989, 26), (3122, 'date_ops', 434, 1082),
    (3123, 'float8_ops', 1970, 701), (3124, 'int8_ops', 1976, 20), (3125, 'numeric_ops', 1988, 1700),
    (3126, 'text_ops', 1994, 25), (3127, 'timestamptz_ops', 434, 1184), (3128, 'timestamp_ops', 434, 1114),
    (10000, 'array_ops', 397, 2277), (10003, 'bool_ops', 424, 16), (10006, 'bytea_ops', 428, 17),
    (10012, 'float4_ops', 1970, 700), (10022, 'interval_ops', 1982, 1186), (10034, 'record_ops', 2994, 2249),
    (10038, 'time_ops', 1996, 1083), (10065, 'uuid_ops', 2968, 2950), (10069, 'enum_ops', 3522, 3500),
    (10088, 'jsonb_ops', 4033, 3802)
) AS class(oid, opcname, opcfamily, opcintype);

-- Their families.
CREATE OR REPLACE TABLE pgc.pg_opfamily AS
SELECT oid::UINTEGER AS oid, 403::UINTEGER AS opfmethod, opfname, 11::UINTEGER AS opfnamespace, 1::UINTEGER AS opfowner
FROM (VALUES
    (397, 'array_ops'), (424, 'bool_ops'), (428, 'bytea_ops'), (434, 'datetime_ops'), (1970, 'float_ops'),
    (1976, 'integer_ops'), (1982, 'interval_ops'), (1988, 'numeric_ops'), (1989, 'oid_ops'), (1994, 'text_ops'),
    (1996, 'time_ops'), (2968, 'uuid_ops'), (2994, 'record_ops'), (3522, 'enum_ops'), (4033, 'jsonb_ops')
) AS family(oid, opfname);

-- See pgc._indexes.
CREATE OR REPLACE VIEW pgc.pg_index AS
SELECT id AS indexrelid, relation_id AS indrelid, len(attnums)::SMALLINT AS indnatts, len(texts)::SMALLINT AS indnkeyatts,
       is_unique AS indisunique, NOT nulls_distinct AS indnullsnotdistinct, is_primary AS indisprimary,
       false AS indisexclusion, deferral = '' AS indimmediate, false AS indisclustered,
       is_primary OR NOT is_unique AS indisvalid, false AS indcheckxmin, true AS indisready,
       true AS indislive, false AS indisreplident, attnums AS indkey,
       list_transform(texts, lambda n: 0::UINTEGER) AS indcollation,
       -- Where a type has no class of its own: those of arrays, of enums, and of text.
       list_transform(key_types, lambda t: CASE WHEN t = 2277 THEN 10000 WHEN t >= 16384 THEN 10069
                                                ELSE coalesce(classes[t], 3126) END::UINTEGER) AS indclass, options AS indoption,
       if(list_contains(attnums, 0), '(' || array_to_string(texts, ' ') || ')', NULL) AS indexprs, condition AS indpred
FROM pgc._indexes, (SELECT map(list(opcintype), list(oid)) AS classes FROM pgc.pg_opclass)
WHERE database = pgf.session_database();

-- What is declared; what is not enforced is not validated either.
CREATE OR REPLACE VIEW pgc.pg_constraint AS
SELECT constraint_id AS oid, name AS conname, schema_id AS connamespace, if(is_primary, 'p', 'u') AS contype,
       deferral <> '' AS condeferrable, deferral LIKE '%DEFERRED' AS condeferred, is_primary AS convalidated,
       relation_id AS conrelid, 0::UINTEGER AS contypid, id AS conindid,
       0::UINTEGER AS conparentid, 0::UINTEGER AS confrelid, ' ' AS confupdtype, ' ' AS confdeltype,
       ' ' AS confmatchtype, true AS conislocal, 0::INTEGER AS coninhcount, true AS connoinherit,
       attnums[:len(texts)] AS conkey,
       NULL::SMALLINT[] AS confkey, NULL::UINTEGER[] AS conpfeqop, NULL::UINTEGER[] AS conppeqop,
       NULL::UINTEGER[] AS conffeqop, NULL::SMALLINT[] AS confdelsetcols, NULL::UINTEGER[] AS conexclop,
       NULL::VARCHAR AS conbin
FROM pgc._indexes WHERE constraint_id IS NOT NULL AND database = pgf.session_database()
UNION ALL
SELECT id, name, schema_id, 'f', key.deferral <> '', key.deferral LIKE '%DEFERRED', false, relation_id, 0::UINTEGER, key_id, 0::UINTEGER,
       parent_id, pgf._action(key.on_update), pgf._action(key.on_delete), if(key.is_full, 'f', 's'), true, 0, true, attnums,
       parent_attnums, NULL, NULL, NULL, if(set_attnums = [], NULL, set_attnums), NULL, NULL
FROM pgc._foreign_keys WHERE database = pgf.session_database()
UNION ALL
SELECT id, name, schema_id, 'c', false, false, true, relation_id, 0::UINTEGER, 0::UINTEGER, 0::UINTEGER, 0::UINTEGER, ' ', ' ', ' ', true, 0, false, attnums, NULL,
       NULL, NULL, NULL, NULL, NULL, condition
FROM pgc._checks WHERE database = pgf.session_database()
UNION ALL
SELECT id, name, schema_id, 'c', false, false, true, 0::UINTEGER, type_oid, 0::UINTEGER, 0::UINTEGER, 0::UINTEGER, ' ', ' ', ' ', true, 0, false, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, condition
FROM pgc._domain_checks WHERE database = pgf.session_database();

-- Comments on objects of the session's database, and on databases.
CREATE OR REPLACE VIEW pgc.pg_description AS
SELECT __oid AS objoid, __class::UINTEGER AS classoid, __column AS objsubid, __text AS description
FROM pgf._comment WHERE __database = pgf.session_database() AND __column >= 0;

CREATE OR REPLACE VIEW pgc.pg_shdescription AS
SELECT __oid AS objoid, __class::UINTEGER AS classoid, __text AS description FROM pgf._comment WHERE __class = 1262;

-- The upstreams of views, through the view's rule as PostgreSQL records them (dbt follows these links).
CREATE OR REPLACE VIEW pgc.pg_depend AS
SELECT 2618::UINTEGER AS classid, id AS objid, 0::INTEGER AS objsubid, 1259::UINTEGER AS refclassid,
       unnest(upstreams)::UINTEGER AS refobjid, 0::INTEGER AS refobjsubid, 'n' AS deptype
FROM pgc._relations WHERE kind NOT IN ('table', 'source') AND database = pgf.session_database()
UNION ALL
SELECT 2618::UINTEGER, id, 0, 1259::UINTEGER, id, 0, 'i' FROM pgc._relations WHERE kind NOT IN ('table', 'source') AND database = pgf.session_database()
UNION ALL
SELECT 1259::UINTEGER, s.id, 0, 1259::UINTEGER, s.table_id, c.attnum::INTEGER, if(s.identity IS NULL, 'a', 'i')
FROM pgc._sequences s
JOIN pgc._columns c ON c.relation_id = s.table_id AND coalesce(c.lake_name, c.name) = s.column_name
WHERE s.database = pgf.session_database();

CREATE OR REPLACE VIEW pgc.pg_sequence AS
SELECT id AS seqrelid, t.oid::UINTEGER AS seqtypid, start AS seqstart, increment AS seqincrement, maximum AS seqmax,
       minimum AS seqmin, cache AS seqcache, cycles AS seqcycle
FROM pgc._sequences s JOIN pgc._types t ON t.name = s.type WHERE database = pgf.session_database();

-- `last_value` is a reserved number; the numbers up to it may not be used yet.
CREATE OR REPLACE VIEW pgc.pg_sequences AS
SELECT schema AS schemaname, name AS sequencename, owner AS sequenceowner, type AS data_type, start AS start_value,
       minimum AS min_value, maximum AS max_value, increment AS increment_by, cycles AS cycle, cache AS cache_size,
       if(p.is_called, p.last_value, NULL) AS last_value
FROM pgc._sequences s LEFT JOIN lake.sparkwave.sequences p ON p.relation_id = s.id
WHERE database = pgf.session_database();

CREATE OR REPLACE VIEW pgc.pg_rewrite AS
SELECT id AS oid, '_RETURN' AS rulename, id AS ev_class, '1' AS ev_type, 'O' AS ev_enabled, true AS is_instead,
       NULL::VARCHAR AS ev_qual, NULL::VARCHAR AS ev_action
FROM pgc._relations WHERE kind NOT IN ('table', 'source') AND database = pgf.session_database();

CREATE OR REPLACE VIEW pgc.pg_database AS
SELECT id AS oid, name AS datname, coalesce((SELECT r.id FROM pgc._roles r WHERE r.name = owner), 1)::UINTEGER AS datdba,
       6::INTEGER AS encoding, 'c' AS datlocprovider,
       false AS datistemplate, true AS datallowconn, (-1)::INTEGER AS datconnlimit, 0::UINTEGER AS datfrozenxid,
       0::UINTEGER AS datminmxid, 1663::UINTEGER AS dattablespace, 'C.UTF-8' AS datcollate, 'C.UTF-8' AS datctype,
       NULL::VARCHAR AS daticulocale, NULL::VARCHAR AS datcollversion, pgf._granted(id) AS datacl
FROM pgc._databases;

CREATE OR REPLACE VIEW pgc.pg_roles AS
SELECT name AS rolname, is_super AS rolsuper, true AS rolinherit, create_user AS rolcreaterole,
       create_db AS rolcreatedb, can_login AS rolcanlogin, false AS rolreplication, (-1)::INTEGER AS rolconnlimit, '********' AS rolpassword,
       valid_until AS rolvaliduntil, is_super AS rolbypassrls, NULL::VARCHAR[] AS rolconfig, id AS oid
FROM pgc._roles;

CREATE OR REPLACE VIEW pgc.pg_authid AS
SELECT oid, rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls,
       rolconnlimit, if(has_password, '********', NULL) AS rolpassword, rolvaliduntil
FROM pgc.pg_roles JOIN pgc._roles ON id = oid;

CREATE OR REPLACE VIEW pgc.pg_user AS
SELECT name AS usename, id AS usesysid, create_db AS usecreatedb, is_super AS usesuper, false AS userepl,
       is_super AS usebypassrls, '********' AS passwd, valid_until AS valuntil, NULL::VARCHAR[] AS useconfig
FROM pgc._roles WHERE can_login;

CREATE OR REPLACE VIEW pgc.pg_shadow AS
SELECT * EXCLUDE (has_password) REPLACE (if(has_password, passwd, NULL) AS passwd)
FROM (SELECT u.*, has_password FROM pgc.pg_user u JOIN pgc._roles ON id = usesysid);

CREATE OR REPLACE VIEW pgc.pg_auth_members AS
SELECT role_id AS roleid, member_id AS member, grantor_id AS grantor, is_admin AS admin_option FROM pgc._memberships;

CREATE OR REPLACE VIEW pgc.pg_group AS
SELECT r.name AS groname, r.id AS grosysid,
       coalesce((SELECT list(m.member_id ORDER BY m.member_id) FROM pgc._memberships m WHERE m.role_id = r.id), []) AS grolist
FROM pgc._roles r WHERE NOT r.can_login;

CREATE OR REPLACE VIEW pgc.pg_am AS
SELECT oid::UINTEGER AS oid, amname, amhandler, amtype
FROM (VALUES (2, 'heap', 'heap_tableam_handler', 't'), (403, 'btree', 'bthandler', 'i'))
    AS row(oid, amname, amhandler, amtype);

CREATE OR REPLACE VIEW pgc.pg_collation AS
SELECT oid::UINTEGER AS oid, collname, 11::UINTEGER AS collnamespace, 1::UINTEGER AS collowner, collprovider,
       true AS collisdeterministic, (-1)::INTEGER AS collencoding, collcollate, collcollate AS collctype,
       NULL::VARCHAR AS colliculocale, NULL::VARCHAR AS collversion
FROM (VALUES (100, 'default', 'd', NULL), (950, 'C', 'c', 'C'), (951, 'POSIX', 'c', 'POSIX'))
    AS row(oid, collname, collprovider, collcollate);

CREATE OR REPLACE VIEW pgc.pg_language AS
SELECT oid::UINTEGER AS oid, lanname, 1::UINTEGER AS lanowner, lanname = 'python' AS lanispl, lanname <> 'python' AS lanpltrusted,
       0::UINTEGER AS lanplcallfoid, 0::UINTEGER AS laninline, 0::UINTEGER AS lanvalidator, NULL::VARCHAR[] AS lanacl
FROM (VALUES (12, 'internal'), (14, 'sql'), (15, 'python')) AS row(oid, lanname);

CREATE OR REPLACE VIEW pgc.pg_tablespace AS
SELECT 1663::UINTEGER AS oid, 'pg_default' AS spcname, 1::UINTEGER AS spcowner, NULL::VARCHAR[] AS spcacl,
       NULL::VARCHAR[] AS spcoptions;

-- The functions that statements call, without those of the grammar such as coalesce, and those that pg_type names.
CREATE OR REPLACE VIEW pgc.pg_proc AS
SELECT oid, name AS proname, 11::UINTEGER AS pronamespace, 1::UINTEGER AS proowner, 12::UINTEGER AS prolang,
       1::FLOAT AS procost, if(returns_set, 1000, 0)::FLOAT AS prorows, variadic_oid AS provariadic, '-' AS prosupport, kind AS prokind,
       false AS prosecdef, false AS proleakproof, is_strict AS proisstrict, returns_set AS proretset, volatility AS provolatile,
       's' AS proparallel, len(argument_oids)::SMALLINT AS pronargs, 0::SMALLINT AS pronargdefaults, result_oid AS prorettype,
       argument_oids::UINTEGER[] AS proargtypes, NULL::UINTEGER[] AS proallargtypes, NULL::VARCHAR[] AS proargmodes,
       NULL::VARCHAR[] AS proargnames, NULL::VARCHAR AS proargdefaults, NULL::UINTEGER[] AS protrftypes,
       name AS prosrc, NULL::VARCHAR AS probin, NULL::VARCHAR AS prosqlbody, NULL::VARCHAR[] AS proconfig,
       NULL::VARCHAR[] AS proacl
FROM pgc._functions
UNION ALL
SELECT id, name, schema_id, owner_id, if(language = 'python', 15, 14)::UINTEGER, 100, if(returns_set, 1000, 0), 0::UINTEGER, '-',
       if(is_aggregate, 'a', 'f'), false, false, is_strict, returns_set, if(language = 'python', 'i', 'v'), 'u',
       len(argument_oids)::SMALLINT, 0::SMALLINT, result_oid, argument_oids, NULL, NULL,
       if(len(list_filter(argument_names, lambda __n: __n <> '')) > 0, argument_names, NULL), NULL, NULL,
       body, NULL, NULL, NULL, nullif(pgf._acl(id), [owner || '=X/' || owner, '=X/' || owner])
FROM pgc._sql_functions WHERE database = pgf.session_database();

CREATE OR REPLACE VIEW pgc.pg_default_acl AS
SELECT oid, role_id AS defaclrole, schema_id AS defaclnamespace,
       CASE kind WHEN 'sequence' THEN 'S' WHEN 'function' THEN 'f' WHEN 'schema' THEN 'n' ELSE 'r' END AS defaclobjtype,
       acl AS defaclacl
FROM pgc._default_acls WHERE database = pgf.session_database();

CREATE OR REPLACE VIEW pgc.pg_tables AS
SELECT schema AS schemaname, name AS tablename, owner AS tableowner, NULL::VARCHAR AS tablespace,
       EXISTS (FROM pgc._indexes i WHERE i.relation_id = r.id) AS hasindexes, false AS hasrules, false AS hastriggers,
       false AS rowsecurity
FROM pgc._relations r WHERE kind = 'table' AND database = pgf.session_database();

CREATE OR REPLACE VIEW pgc.pg_matviews AS
SELECT schema AS schemaname, name AS matviewname, owner AS matviewowner, NULL::VARCHAR AS tablespace,
       EXISTS (FROM pgc._indexes i WHERE i.relation_id = r.id) AS hasindexes, true AS ispopulated,
       pgf.pg_get_viewdef(r.id) AS definition
FROM pgc._relations r WHERE kind = 'materialized view' AND database = pgf.session_database();

CREATE OR REPLACE VIEW pgc.pg_views AS
SELECT schema AS schemaname, name AS viewname, owner AS viewowner, pgf.pg_get_viewdef(r.id) AS definition
FROM pgc._relations r WHERE kind = 'view' AND database = pgf.session_database();

CREATE OR REPLACE VIEW pgc.pg_indexes AS
SELECT relation_schema AS schemaname, relation_name AS tablename, name AS indexname, NULL::VARCHAR AS tablespace,
       pgf.pg_get_indexdef(id) AS indexdef
FROM pgc._indexes WHERE database = pgf.session_database();

-- The session's variables under PostgreSQL's spelling, and PostgreSQL's own settings that are no variables here.
CREATE OR REPLACE VIEW pgc.pg_settings AS
SELECT coalesce(known.name, r.name) AS name, coalesce(r.setting, known.setting) AS setting, NULL::VARCHAR AS unit,
       'Preset Options' AS category, coalesce(r.description, known.description) AS short_desc,
       NULL::VARCHAR AS extra_desc, coalesce(r.context, 'internal') AS context,
       CASE WHEN coalesce(r.boot_val, known.setting) IN ('true', 'false', 'on', 'off') THEN 'bool' ELSE 'string' END AS vartype,
       CASE WHEN r.setting IS DISTINCT FROM r.reset_val THEN 'session'
            WHEN r.reset_val IS DISTINCT FROM r.boot_val THEN 'configuration file' ELSE 'default' END AS source,
       NULL::VARCHAR AS min_val, NULL::VARCHAR AS max_val, NULL::VARCHAR[] AS enumvals,
       coalesce(r.boot_val, known.setting) AS boot_val, coalesce(r.reset_val, known.setting) AS reset_val,
       NULL::VARCHAR AS sourcefile, NULL::INTEGER AS sourceline, false AS pending_restart
FROM (
    SELECT s.* FROM (SELECT unnest(from_json(
        coalesce(getvariable('pg_settings'), '[]')::VARCHAR, '[{
        "name": "VARCHAR", "setting": "VARCHAR", "description": "VARCHAR", "context": "VARCHAR", "boot_val": "VARCHAR",
        "reset_val": "VARCHAR"}]')) AS s)
) AS r FULL JOIN pgc._settings AS known ON lower(known.name) = r.name;

CREATE OR REPLACE MACRO pgf.pg_settings(settings) AS TABLE
    SELECT * REPLACE (coalesce(settings[lower(name)], setting) AS setting) FROM pgc.pg_settings;
CREATE OR REPLACE MACRO pgf.pg_show_all_settings() AS TABLE FROM pgc.pg_settings;

CREATE OR REPLACE VIEW pgc.pg_stat_user_tables AS
SELECT r.id AS relid, r.schema AS schemaname, r.name AS relname, 0::BIGINT AS seq_scan, 0::BIGINT AS seq_tup_read,
       0::BIGINT AS idx_scan, 0::BIGINT AS idx_tup_fetch, 0::BIGINT AS n_tup_ins, 0::BIGINT AS n_tup_upd,
       0::BIGINT AS n_tup_del, 0::BIGINT AS n_tup_hot_upd, coalesce(s.__rows, 0)::BIGINT AS n_live_tup,
       0::BIGINT AS n_dead_tup, 0::BIGINT AS n_mod_since_analyze, 0::BIGINT AS n_ins_since_vacuum,
       NULL::TIMESTAMPTZ AS last_vacuum, NULL::TIMESTAMPTZ AS last_autovacuum, NULL::TIMESTAMPTZ AS last_analyze,
       NULL::TIMESTAMPTZ AS last_autoanalyze, 0::BIGINT AS vacuum_count, 0::BIGINT AS autovacuum_count,
       0::BIGINT AS analyze_count, 0::BIGINT AS autoanalyze_count
FROM pgc._relations r LEFT JOIN pgf._size s ON s.__oid = r.id
WHERE r.kind <> 'view' AND r.database = pgf.session_database();

CREATE OR REPLACE VIEW pgc.pg_stat_all_tables AS FROM pgc.pg_stat_user_tables;

CREATE OR REPLACE VIEW pgc.pg_statio_user_tables AS
SELECT relid, schemaname, relname, 0::BIGINT AS heap_blks_read, 0::BIGINT AS heap_blks_hit, 0::BIGINT AS idx_blks_read,
       0::BIGINT AS idx_blks_hit, 0::BIGINT AS toast_blks_read, 0::BIGINT AS toast_blks_hit,
       0::BIGINT AS tidx_blks_read, 0::BIGINT AS tidx_blks_hit
FROM pgc.pg_stat_user_tables;

CREATE OR REPLACE VIEW pgc.pg_statio_all_tables AS FROM pgc.pg_statio_user_tables;

-- The casts of PostgreSQL 15 between types that are here, all of which queries can do.
CREATE OR REPLACE VIEW pgc.pg_cast AS
SELECT c.oid::UINTEGER AS oid, s.oid AS castsource, t.oid AS casttarget, c.function::UINTEGER AS castfunc,
       c.context AS castcontext, c.method AS castmethod
FROM (VALUES
    (10000, 'int8', 'int2', 714, 'a', 'f'), (10001, 'int8', 'int4', 480, 'a', 'f'),
    (10002, 'int8', 'float4', 652, 'i', 'f'), (10003, 'int8', 'float8', 482, 'i', 'f'),
    (10004, 'int8', 'numeric', 1781, 'i', 'f'), (10005, 'int2', 'int8', 754, 'i', 'f'),
    (10006, 'int2', 'int4', 313, 'i', 'f'), (10007, 'int2', 'float4', 236, 'i', 'f'),
    (10008, 'int2', 'float8', 235, 'i', 'f'), (10009, 'int2', 'numeric', 1782, 'i', 'f'),
    (10010, 'int4', 'int8', 481, 'i', 'f'), (10011, 'int4', 'int2', 314, 'a', 'f'),
    (10012, 'int4', 'float4', 318, 'i', 'f'), (10013, 'int4', 'float8', 316, 'i', 'f'),
    (10014, 'int4', 'numeric', 1740, 'i', 'f'), (10015, 'float4', 'int8', 653, 'a', 'f'),
    (10016, 'float4', 'int2', 238, 'a', 'f'), (10017, 'float4', 'int4', 319, 'a', 'f'),
    (10018, 'float4', 'float8', 311, 'i', 'f'), (10019, 'float4', 'numeric', 1742, 'a', 'f'),
    (10020, 'float8', 'int8', 483, 'a', 'f'), (10021, 'float8', 'int2', 237, 'a', 'f'),
    (10022, 'float8', 'int4', 317, 'a', 'f'), (10023, 'float8', 'float4', 312, 'a', 'f'),
    (10024, 'float8', 'numeric', 1743, 'a', 'f'), (10025, 'numeric', 'int8', 1779, 'a', 'f'),
    (10026, 'numeric', 'int2', 1783, 'a', 'f'), (10027, 'numeric', 'int4', 1744, 'a', 'f'),
    (10028, 'numeric', 'float4', 1745, 'i', 'f'), (10029, 'numeric', 'float8', 1746, 'i', 'f'),
    (10034, 'int4', 'bool', 2557, 'e', 'f'), (10035, 'bool', 'int4', 2558, 'e', 'f'),
    (10037, 'int8', 'oid', 1287, 'i', 'f'), (10038, 'int2', 'oid', 313, 'i', 'f'),
    (10039, 'int4', 'oid', 0, 'i', 'b'), (10040, 'oid', 'int8', 1288, 'a', 'f'), (10041, 'oid', 'int4', 0, 'a', 'b'),
    (10074, 'oid', 'regclass', 0, 'i', 'b'), (10075, 'regclass', 'oid', 0, 'i', 'b'),
    (10076, 'int8', 'regclass', 1287, 'i', 'f'), (10077, 'int2', 'regclass', 313, 'i', 'f'),
    (10078, 'int4', 'regclass', 0, 'i', 'b'), (10079, 'regclass', 'int8', 1288, 'a', 'f'),
    (10080, 'regclass', 'int4', 0, 'a', 'b'), (10109, 'text', 'regclass', 1079, 'i', 'f'),
    (10110, 'varchar', 'regclass', 1079, 'i', 'f'), (10126, 'text', 'varchar', 0, 'i', 'b'),
    (10129, 'varchar', 'text', 0, 'i', 'b'), (10134, 'name', 'text', 406, 'i', 'f'),
    (10136, 'name', 'varchar', 1401, 'a', 'f'), (10140, 'text', 'name', 407, 'i', 'f'),
    (10142, 'varchar', 'name', 1400, 'i', 'f'), (10152, 'date', 'timestamp', 2024, 'i', 'f'),
    (10153, 'date', 'timestamptz', 1174, 'i', 'f'), (10154, 'time', 'interval', 1370, 'i', 'f'),
    (10156, 'timestamp', 'date', 2029, 'a', 'f'), (10157, 'timestamp', 'time', 1316, 'a', 'f'),
    (10158, 'timestamp', 'timestamptz', 2028, 'i', 'f'), (10159, 'timestamptz', 'date', 1178, 'a', 'f'),
    (10160, 'timestamptz', 'time', 2019, 'a', 'f'), (10161, 'timestamptz', 'timestamp', 2027, 'a', 'f'),
    (10163, 'interval', 'time', 1419, 'a', 'f'), (10191, 'bool', 'text', 2971, 'a', 'f'),
    (10196, 'bool', 'varchar', 2971, 'a', 'f'), (10205, 'varchar', 'varchar', 669, 'i', 'f'),
    (10206, 'time', 'time', 1968, 'i', 'f'), (10207, 'timestamp', 'timestamp', 1961, 'i', 'f'),
    (10208, 'timestamptz', 'timestamptz', 1967, 'i', 'f'), (10209, 'interval', 'interval', 1200, 'i', 'f'),
    (10213, 'numeric', 'numeric', 1703, 'i', 'f'), (10214, 'json', 'jsonb', 0, 'a', 'i'),
    (10215, 'jsonb', 'json', 0, 'a', 'i'), (10216, 'jsonb', 'bool', 3556, 'e', 'f'),
    (10217, 'jsonb', 'numeric', 3449, 'e', 'f'), (10218, 'jsonb', 'int2', 3450, 'e', 'f'),
    (10219, 'jsonb', 'int4', 3451, 'e', 'f'), (10220, 'jsonb', 'int8', 3452, 'e', 'f'),
    (10221, 'jsonb', 'float4', 3453, 'e', 'f'), (10222, 'jsonb', 'float8', 2580, 'e', 'f')
) AS c (oid, source, target, function, context, method)
JOIN pgc._all_types s ON s.typname = c.source JOIN pgc._all_types t ON t.typname = c.target;
