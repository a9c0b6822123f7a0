-- information_schema: tables and views of the session's database, and empty relations for missing kinds of objects.

CREATE OR REPLACE VIEW infs.information_schema_catalog_name AS SELECT pgf.session_database() AS catalog_name;

CREATE OR REPLACE VIEW infs.schemata AS
SELECT pgf.session_database() AS catalog_name, n.nspname AS schema_name, pgf.pg_get_userbyid(n.nspowner) AS schema_owner,
       NULL::VARCHAR AS default_character_set_catalog, NULL::VARCHAR AS default_character_set_schema,
       NULL::VARCHAR AS default_character_set_name, NULL::VARCHAR AS sql_path
FROM pgc.pg_namespace n;

-- Materialized views are listed, as RisingWave does and PostgreSQL does not.
CREATE OR REPLACE VIEW infs.tables AS
SELECT pgf.session_database() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
       CASE WHEN n.nspname IN ('pg_catalog', 'information_schema', 'rw_catalog') THEN 'SYSTEM TABLE'
            WHEN c.relpersistence = 't' THEN 'LOCAL TEMPORARY'
            WHEN c.relkind = 'm' THEN 'MATERIALIZED VIEW' WHEN c.relkind = 'v' THEN 'VIEW'
            WHEN c.relkind = 's' THEN 'SOURCE'
            ELSE 'BASE TABLE' END AS table_type,
       NULL::VARCHAR AS self_referencing_column_name, NULL::VARCHAR AS reference_generation,
       NULL::VARCHAR AS user_defined_type_catalog, NULL::VARCHAR AS user_defined_type_schema,
       NULL::VARCHAR AS user_defined_type_name, if(c.relkind = 'r', 'YES', 'NO') AS is_insertable_into,
       'NO' AS is_typed, NULL::VARCHAR AS commit_action
FROM pgc.pg_class c JOIN pgc.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind NOT IN ('i', 'S') AND NOT pgf.pg_is_other_temp_schema(n.oid);

CREATE OR REPLACE VIEW infs.columns AS
WITH shown AS (
    SELECT r.schema, r.name AS relation, r.kind, c.name, c.attnum, c.default_text, c.not_null, c.dimensions, c.type, c.type_oid,
           c.typmod, c.identity, c.sequence_id, c.generated
    FROM pgc._columns c JOIN pgc._relations r ON r.id = c.relation_id
    WHERE NOT c.is_hidden AND r.database = pgf.session_database()
    UNION ALL
    SELECT s.schema, s.name, 'view', c.name, c.attnum, NULL, false, c.dimensions, '', c.type_oid, -1, NULL, NULL, NULL
    FROM pgc._system_columns c JOIN pgc._system_relations s ON s.id = c.relation_id
)
SELECT pgf.session_database() AS table_catalog, c.schema AS table_schema, c.relation AS table_name, c.name AS column_name,
       c.attnum::INTEGER AS ordinal_position, c.default_text AS column_default,
       if(c.not_null, 'NO', 'YES') AS is_nullable,
       CASE WHEN c.dimensions > 0 THEN 'ARRAY' WHEN c.type LIKE 'struct<%' OR c.type LIKE 'map(%' THEN c.type WHEN t.oid IS NULL AND u.kind <> 'd' THEN 'USER-DEFINED' ELSE coalesce(t.name, d.name) END AS data_type,
       if(t.typname = 'varchar' AND c.typmod > 0, c.typmod - 4, NULL)::INTEGER AS character_maximum_length,
       if(t.category = 'S', if(c.typmod > 0, 4 * (c.typmod - 4), 1073741824), NULL)::INTEGER AS character_octet_length,
       CASE t.typname WHEN 'int2' THEN 16 WHEN 'int4' THEN 32 WHEN 'int8' THEN 64 WHEN 'float4' THEN 24 WHEN 'float8' THEN 53
            WHEN 'numeric' THEN if(c.typmod < 0, NULL, (c.typmod - 4) >> 16) END::INTEGER AS numeric_precision,
       CASE WHEN t.typname = 'numeric' THEN 10 WHEN t.category = 'N' THEN 2 END::INTEGER AS numeric_precision_radix,
       CASE WHEN t.typname = 'numeric' THEN if(c.typmod < 0, NULL, (c.typmod - 4) & 65535)
            WHEN t.typname LIKE 'int_' THEN 0 END::INTEGER AS numeric_scale,
       if(t.category IN ('D', 'T'), if(t.typname = 'date', 0, if(c.typmod >= 0 AND c.typmod & 65535 < 6, c.typmod & 65535, 6)), NULL)::INTEGER
           AS datetime_precision,
       if(t.typname = 'interval' AND c.typmod >= 0,
          upper(nullif(regexp_replace(pgf.format_type(1186, c.typmod), '^interval ?(\(\d\))?', ''), '')), NULL)::VARCHAR AS interval_type, NULL::INTEGER AS interval_precision, NULL::VARCHAR AS character_set_catalog,
       NULL::VARCHAR AS character_set_schema, NULL::VARCHAR AS character_set_name, NULL::VARCHAR AS collation_catalog,
       NULL::VARCHAR AS collation_schema, NULL::VARCHAR AS collation_name, if(u.kind = 'd', u.database, NULL) AS domain_catalog,
       if(u.kind = 'd', u.schema, NULL) AS domain_schema, if(u.kind = 'd', u.name, NULL) AS domain_name,
       pgf.session_database() AS udt_catalog, if(u.kind = 'd', 'pg_catalog', coalesce(u.schema, 'pg_catalog')) AS udt_schema,
       coalesce(t.typname, d.typname, if(u.array_oid = c.type_oid, '_', '') || u.name) AS udt_name, NULL::VARCHAR AS scope_catalog, NULL::VARCHAR AS scope_schema,
       NULL::VARCHAR AS scope_name, NULL::INTEGER AS maximum_cardinality, c.attnum::VARCHAR AS dtd_identifier,
       'NO' AS is_self_referencing, if(s.id IS NULL, 'NO', 'YES') AS is_identity, c.identity AS identity_generation,
       s.start::VARCHAR AS identity_start, s.increment::VARCHAR AS identity_increment,
       s.maximum::VARCHAR AS identity_maximum, s.minimum::VARCHAR AS identity_minimum,
       if(s.cycles, 'YES', 'NO') AS identity_cycle,
       if(c.generated IS NULL, 'NEVER', 'ALWAYS') AS is_generated, c.generated AS generation_expression,
       if(c.kind = 'table' AND c.generated IS NULL, 'YES', 'NO') AS is_updatable
FROM shown c
LEFT JOIN pgc._all_types t ON t.oid = c.type_oid
LEFT JOIN pgc._user_types u ON c.type_oid IN (u.oid, u.array_oid)
LEFT JOIN pgc._all_types d ON d.oid = u.base_oid
LEFT JOIN pgc._sequences s ON s.id = c.sequence_id AND c.identity IS NOT NULL;

CREATE OR REPLACE VIEW infs.sequences AS
SELECT database AS sequence_catalog, schema AS sequence_schema, name AS sequence_name, type AS data_type,
       CASE type WHEN 'smallint' THEN 16 WHEN 'integer' THEN 32 ELSE 64 END::INTEGER AS numeric_precision,
       2::INTEGER AS numeric_precision_radix, 0::INTEGER AS numeric_scale, start::VARCHAR AS start_value,
       minimum::VARCHAR AS minimum_value, maximum::VARCHAR AS maximum_value, increment::VARCHAR AS increment,
       if(cycles, 'YES', 'NO') AS cycle_option
FROM pgc._sequences WHERE identity IS NULL AND database = pgf.session_database();

-- Materialized views are only in `tables`.
CREATE OR REPLACE VIEW infs.views AS
SELECT pgf.session_database() AS table_catalog, schemaname AS table_schema, viewname AS table_name,
       definition AS view_definition, 'NONE' AS check_option, 'NO' AS is_updatable, 'NO' AS is_insertable_into,
       'NO' AS is_trigger_updatable, 'NO' AS is_trigger_deletable, 'NO' AS is_trigger_insertable_into
FROM pgc.pg_views;

CREATE OR REPLACE VIEW infs.table_constraints AS
SELECT database AS constraint_catalog, schema AS constraint_schema, name AS constraint_name, database AS table_catalog,
       schema AS table_schema, relation_name AS table_name, if(is_primary, 'PRIMARY KEY', 'UNIQUE') AS constraint_type,
       if(deferral = '', 'NO', 'YES') AS is_deferrable, if(deferral LIKE '%DEFERRED', 'YES', 'NO') AS initially_deferred,
       if(is_primary, 'YES', 'NO') AS enforced,
       CASE WHEN is_primary THEN NULL WHEN nulls_distinct THEN 'YES' ELSE 'NO' END AS nulls_distinct
FROM pgc._indexes WHERE constraint_id IS NOT NULL AND database = pgf.session_database()
UNION ALL
SELECT database, schema, key.name, database, schema, relation_name, 'FOREIGN KEY', if(key.deferral = '', 'NO', 'YES'),
       if(key.deferral LIKE '%DEFERRED', 'YES', 'NO'), 'NO', NULL
FROM pgc._foreign_keys WHERE database = pgf.session_database()
UNION ALL
SELECT database, schema, name, database, schema, relation_name, 'PRIMARY KEY', 'NO', 'NO', 'YES', NULL
FROM pgc._view_keys WHERE database = pgf.session_database()
UNION ALL
SELECT database, schema, name, database, schema, relation_name, 'CHECK', 'NO', 'NO', 'YES', NULL
FROM pgc._checks WHERE database = pgf.session_database();

CREATE OR REPLACE VIEW infs.check_constraints AS
SELECT database AS constraint_catalog, schema AS constraint_schema, name AS constraint_name,
       '((' || condition || '))' AS check_clause
FROM pgc._checks WHERE database = pgf.session_database();

CREATE OR REPLACE VIEW infs.key_column_usage AS
SELECT database AS constraint_catalog, schema AS constraint_schema, name AS constraint_name, database AS table_catalog,
       schema AS table_schema, relation_name AS table_name, unnest(columns) AS column_name,
       generate_subscripts(columns, 1)::INTEGER AS ordinal_position, unnest(positions) AS position_in_unique_constraint
FROM (SELECT database, schema, name, relation_name, columns, list_transform(columns, lambda c: NULL::INTEGER) AS positions
      FROM pgc._indexes WHERE constraint_id IS NOT NULL
      UNION ALL
      SELECT database, schema, name, relation_name, columns, list_transform(columns, lambda c: NULL::INTEGER)
      FROM pgc._view_keys
      UNION ALL
      SELECT database, schema, key.name, relation_name, columns,
             list_transform(parent_attnums, lambda n: list_position(key_attnums, n)::INTEGER)
      FROM pgc._foreign_keys)
WHERE database = pgf.session_database();

CREATE OR REPLACE VIEW infs.referential_constraints AS
SELECT database AS constraint_catalog, schema AS constraint_schema, key.name AS constraint_name,
       if(key_name IS NULL, NULL, database) AS unique_constraint_catalog,
       if(key_name IS NULL, NULL, parent_schema) AS unique_constraint_schema,
       key_name AS unique_constraint_name, if(key.is_full, 'FULL', 'NONE') AS match_option, key.on_update AS update_rule,
       key.on_delete AS delete_rule
FROM pgc._foreign_keys WHERE database = pgf.session_database();

-- Of all users, since the session's user is not known here.
CREATE OR REPLACE VIEW infs.applicable_roles AS
SELECT member AS grantee, role AS role_name, if(is_admin, 'YES', 'NO') AS is_grantable FROM pgc._memberships;

CREATE OR REPLACE VIEW infs.administrable_role_authorizations AS FROM infs.applicable_roles WHERE is_grantable = 'YES';

CREATE OR REPLACE VIEW infs.collations AS
SELECT pgf.session_database() AS collation_catalog, 'pg_catalog' AS collation_schema, collname AS collation_name,
       'NO PAD' AS pad_attribute
FROM pgc.pg_collation;

-- Materialized views have no constraints, though they have an index.
CREATE OR REPLACE VIEW infs.constraint_column_usage AS
SELECT database AS table_catalog, table_schema, table_name, unnest(columns) AS column_name,
       database AS constraint_catalog, schema AS constraint_schema, name AS constraint_name
FROM (SELECT database, schema AS table_schema, relation_name AS table_name, columns, schema, name
      FROM pgc._indexes WHERE constraint_id IS NOT NULL
      UNION ALL
      SELECT database, parent_schema, parent_name, parent_columns, schema, key.name FROM pgc._foreign_keys
      UNION ALL
      SELECT database, schema, relation_name, columns, schema, name FROM pgc._checks)
WHERE database = pgf.session_database();

CREATE OR REPLACE VIEW infs.constraint_table_usage AS
SELECT database AS table_catalog, schema AS table_schema, relation_name AS table_name, database AS constraint_catalog,
       schema AS constraint_schema, name AS constraint_name
FROM pgc._indexes WHERE constraint_id IS NOT NULL AND database = pgf.session_database()
UNION ALL
SELECT database, parent_schema, parent_name, database, schema, key.name
FROM pgc._foreign_keys WHERE database = pgf.session_database();

CREATE OR REPLACE VIEW infs.view_table_usage AS
SELECT v.database AS view_catalog, v.schema AS view_schema, v.name AS view_name, t.database AS table_catalog,
       t.schema AS table_schema, t.name AS table_name
FROM (SELECT database, schema, name, unnest(upstreams)::UINTEGER AS upstream FROM pgc._relations WHERE kind = 'view') v
JOIN pgc._relations t ON t.id = v.upstream
WHERE v.database = pgf.session_database();

CREATE OR REPLACE VIEW infs.enabled_roles AS SELECT name AS role_name FROM pgc._roles;

-- The element types of array columns.
CREATE OR REPLACE VIEW infs.element_types AS
FROM infs._element_types
UNION ALL BY NAME
SELECT r.database AS object_catalog, r.schema AS object_schema, r.name AS object_name, 'TABLE' AS object_type,
       c.attnum::VARCHAR AS collection_type_identifier, e.name AS data_type, r.database AS udt_catalog,
       'pg_catalog' AS udt_schema, e.typname AS udt_name, 'a' || c.attnum AS dtd_identifier
FROM pgc._columns c
JOIN pgc._relations r ON r.id = c.relation_id
JOIN pgc._all_types a ON a.oid = c.type_oid
JOIN pgc._all_types e ON e.oid = a.element_oid
WHERE c.dimensions > 0 AND NOT c.is_hidden AND r.kind <> 'materialized view' AND r.database = pgf.session_database();

-- The owners' privileges and the granted ones; as in PostgreSQL, without materialized views.
CREATE OR REPLACE VIEW infs.table_privileges AS
WITH own AS (
    FROM (VALUES ('INSERT', 'table'), ('SELECT', 'table'), ('UPDATE', 'table'), ('DELETE', 'table'), ('SELECT', 'view'))
        AS fixed(privilege, kind)
), held AS (
    SELECT r.id, r.owner AS grantor, r.owner AS grantee, o.privilege, true AS is_grantable
    FROM pgc._relations r JOIN own o ON o.kind = r.kind
    UNION ALL
    SELECT object_id, grantor, if(grantee = 'public', 'PUBLIC', grantee), privilege, is_grantable
    FROM pgc._grants WHERE column_name IS NULL
)
SELECT h.grantor, h.grantee, r.database AS table_catalog, r.schema AS table_schema, r.name AS table_name,
       h.privilege AS privilege_type, if(h.is_grantable, 'YES', 'NO') AS is_grantable,
       if(h.privilege = 'SELECT', 'YES', 'NO') AS with_hierarchy
FROM held h JOIN pgc._relations r ON r.id = h.id
WHERE r.kind <> 'materialized view' AND r.database = pgf.session_database();

CREATE OR REPLACE VIEW infs.role_table_grants AS FROM infs.table_privileges WHERE grantee <> 'PUBLIC';

-- A privilege on a table, except DELETE, holds for each of its columns.
CREATE OR REPLACE VIEW infs.column_privileges AS
SELECT p.grantor, p.grantee, p.table_catalog, p.table_schema, p.table_name, c.column_name, p.privilege_type,
       p.is_grantable
FROM infs.table_privileges p
JOIN infs.columns c USING (table_schema, table_name)
WHERE p.privilege_type <> 'DELETE'
UNION
SELECT g.grantor, if(g.grantee = 'public', 'PUBLIC', g.grantee), r.database, r.schema, r.name, g.column_name, g.privilege,
       if(g.is_grantable, 'YES', 'NO')
FROM pgc._grants g JOIN pgc._relations r ON r.id = g.object_id
WHERE g.column_name IS NOT NULL AND r.kind <> 'materialized view' AND r.database = pgf.session_database();

CREATE OR REPLACE VIEW infs.role_column_grants AS FROM infs.column_privileges WHERE grantee <> 'PUBLIC';

-- Functions, all of them built in; as in PostgreSQL, without aggregates and window functions.
CREATE OR REPLACE VIEW infs.routines AS
FROM infs._routines
UNION ALL BY NAME
SELECT pgf.session_database() AS specific_catalog, 'pg_catalog' AS specific_schema, p.proname || '_' || p.oid AS specific_name,
       pgf.session_database() AS routine_catalog, 'pg_catalog' AS routine_schema, p.proname AS routine_name,
       if(p.prokind = 'f', 'FUNCTION', NULL) AS routine_type, if(t.element_oid <> 0, 'ARRAY', t.name) AS data_type,
       pgf.session_database() AS type_udt_catalog, 'pg_catalog' AS type_udt_schema, t.typname AS type_udt_name,
       '0' AS dtd_identifier, 'EXTERNAL' AS routine_body, p.proname AS external_name, 'INTERNAL' AS external_language,
       'GENERAL' AS parameter_style, if(p.provolatile = 'i', 'YES', 'NO') AS is_deterministic, 'MODIFIES' AS sql_data_access,
       if(p.proisstrict, 'YES', 'NO') AS is_null_call, 'YES' AS schema_level_routine, 0 AS max_dynamic_result_sets,
       'INVOKER' AS security_type, 'NO' AS as_locator, 'NO' AS is_udt_dependent
FROM pgc.pg_proc p JOIN pgc._all_types t ON t.oid = p.prorettype;
