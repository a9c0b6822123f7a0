-- information_schema: tables and views of the session's database, and empty relations for what does not exist here.

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
            WHEN c.relkind = 'm' THEN 'MATERIALIZED VIEW' WHEN c.relkind = 'v' THEN 'VIEW'
            ELSE 'BASE TABLE' END AS table_type,
       NULL::VARCHAR AS self_referencing_column_name, NULL::VARCHAR AS reference_generation,
       NULL::VARCHAR AS user_defined_type_catalog, NULL::VARCHAR AS user_defined_type_schema,
       NULL::VARCHAR AS user_defined_type_name, if(c.relkind = 'r', 'YES', 'NO') AS is_insertable_into,
       'NO' AS is_typed, NULL::VARCHAR AS commit_action
FROM pgc.pg_class c JOIN pgc.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind <> 'i';

CREATE OR REPLACE VIEW infs.columns AS
SELECT pgf.session_database() AS table_catalog, r.schema AS table_schema, r.name AS table_name, c.name AS column_name,
       c.attnum::INTEGER AS ordinal_position, NULL::VARCHAR AS column_default,
       if(c.not_null, 'NO', 'YES') AS is_nullable,
       CASE WHEN c.dimensions > 0 THEN 'ARRAY' WHEN c.type LIKE 'struct<%' THEN c.type ELSE t.name END AS data_type,
       NULL::INTEGER AS character_maximum_length,
       if(t.category = 'S', 1073741824, NULL)::INTEGER AS character_octet_length,
       CASE t.typname WHEN 'int2' THEN 16 WHEN 'int4' THEN 32 WHEN 'int8' THEN 64 WHEN 'float4' THEN 24 WHEN 'float8' THEN 53
            WHEN 'numeric' THEN if(c.typmod < 0, NULL, (c.typmod - 4) >> 16) END::INTEGER AS numeric_precision,
       CASE WHEN t.typname = 'numeric' THEN 10 WHEN t.category = 'N' THEN 2 END::INTEGER AS numeric_precision_radix,
       CASE WHEN t.typname = 'numeric' THEN if(c.typmod < 0, NULL, (c.typmod - 4) & 65535)
            WHEN t.typname LIKE 'int_' THEN 0 END::INTEGER AS numeric_scale,
       if(t.category IN ('D', 'T'), if(t.typname = 'date', 0, 6), NULL)::INTEGER AS datetime_precision,
       NULL::VARCHAR AS interval_type, NULL::INTEGER AS interval_precision, NULL::VARCHAR AS character_set_catalog,
       NULL::VARCHAR AS character_set_schema, NULL::VARCHAR AS character_set_name, NULL::VARCHAR AS collation_catalog,
       NULL::VARCHAR AS collation_schema, NULL::VARCHAR AS collation_name, NULL::VARCHAR AS domain_catalog,
       NULL::VARCHAR AS domain_schema, NULL::VARCHAR AS domain_name, pgf.session_database() AS udt_catalog,
       'pg_catalog' AS udt_schema, t.typname AS udt_name, NULL::VARCHAR AS scope_catalog, NULL::VARCHAR AS scope_schema,
       NULL::VARCHAR AS scope_name, NULL::INTEGER AS maximum_cardinality, c.attnum::VARCHAR AS dtd_identifier,
       'NO' AS is_self_referencing, 'NO' AS is_identity, NULL::VARCHAR AS identity_generation,
       NULL::VARCHAR AS identity_start, NULL::VARCHAR AS identity_increment, NULL::VARCHAR AS identity_maximum,
       NULL::VARCHAR AS identity_minimum, 'NO' AS identity_cycle, 'NEVER' AS is_generated,
       NULL::VARCHAR AS generation_expression, if(r.kind = 'table', 'YES', 'NO') AS is_updatable
FROM pgc._columns c
JOIN pgc._relations r ON r.id = c.relation_id
LEFT JOIN pgc._all_types t ON t.oid = c.type_oid
WHERE NOT c.is_hidden AND r.database = pgf.session_database();

-- Materialized views are only in `tables`.
CREATE OR REPLACE VIEW infs.views AS
SELECT pgf.session_database() AS table_catalog, schemaname AS table_schema, viewname AS table_name,
       definition AS view_definition, 'NONE' AS check_option, 'NO' AS is_updatable, 'NO' AS is_insertable_into,
       'NO' AS is_trigger_updatable, 'NO' AS is_trigger_deletable, 'NO' AS is_trigger_insertable_into
FROM pgc.pg_views;

CREATE OR REPLACE VIEW infs.table_constraints AS
SELECT database AS constraint_catalog, schema AS constraint_schema, name AS constraint_name, database AS table_catalog,
       schema AS table_schema, relation_name AS table_name, 'PRIMARY KEY' AS constraint_type, 'NO' AS is_deferrable,
       'NO' AS initially_deferred, 'YES' AS enforced, NULL::VARCHAR AS nulls_distinct
FROM pgc._indexes WHERE kind = 'table' AND database = pgf.session_database();

CREATE OR REPLACE VIEW infs.key_column_usage AS
SELECT database AS constraint_catalog, schema AS constraint_schema, name AS constraint_name, database AS table_catalog,
       schema AS table_schema, relation_name AS table_name, unnest(columns) AS column_name,
       generate_subscripts(columns, 1)::INTEGER AS ordinal_position, NULL::INTEGER AS position_in_unique_constraint
FROM pgc._indexes WHERE kind = 'table' AND database = pgf.session_database();

CREATE OR REPLACE VIEW infs.applicable_roles AS
SELECT name AS grantee, name AS role_name, 'NO' AS is_grantable FROM pgc._roles WHERE false;

CREATE OR REPLACE VIEW infs.collations AS
SELECT pgf.session_database() AS collation_catalog, 'pg_catalog' AS collation_schema, collname AS collation_name,
       'NO PAD' AS pad_attribute
FROM pgc.pg_collation;

CREATE OR REPLACE TABLE infs.character_sets (
    character_set_catalog VARCHAR, character_set_schema VARCHAR, character_set_name VARCHAR,
    character_repertoire VARCHAR, form_of_use VARCHAR, default_collate_catalog VARCHAR,
    default_collate_schema VARCHAR, default_collate_name VARCHAR
);
CREATE OR REPLACE TABLE infs.check_constraints (
    constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR, check_clause VARCHAR
);
CREATE OR REPLACE TABLE infs.column_privileges (
    grantor VARCHAR, grantee VARCHAR, table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR,
    column_name VARCHAR, privilege_type VARCHAR, is_grantable VARCHAR
);
CREATE OR REPLACE TABLE infs.constraint_column_usage (
    table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, column_name VARCHAR,
    constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR
);
CREATE OR REPLACE TABLE infs.constraint_table_usage (
    table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, constraint_catalog VARCHAR,
    constraint_schema VARCHAR, constraint_name VARCHAR
);
CREATE OR REPLACE TABLE infs.domains (
    domain_catalog VARCHAR, domain_schema VARCHAR, domain_name VARCHAR, data_type VARCHAR,
    character_maximum_length INTEGER, numeric_precision INTEGER, numeric_scale INTEGER, domain_default VARCHAR,
    udt_catalog VARCHAR, udt_schema VARCHAR, udt_name VARCHAR, dtd_identifier VARCHAR
);
CREATE OR REPLACE TABLE infs.element_types (
    object_catalog VARCHAR, object_schema VARCHAR, object_name VARCHAR, object_type VARCHAR,
    collection_type_identifier VARCHAR, data_type VARCHAR, udt_catalog VARCHAR, udt_schema VARCHAR,
    udt_name VARCHAR, dtd_identifier VARCHAR
);
CREATE OR REPLACE TABLE infs.enabled_roles (
    role_name VARCHAR
);
CREATE OR REPLACE TABLE infs.foreign_tables (
    foreign_table_catalog VARCHAR, foreign_table_schema VARCHAR, foreign_table_name VARCHAR,
    foreign_server_catalog VARCHAR, foreign_server_name VARCHAR
);
CREATE OR REPLACE TABLE infs.parameters (
    specific_catalog VARCHAR, specific_schema VARCHAR, specific_name VARCHAR, ordinal_position INTEGER,
    parameter_mode VARCHAR, is_result VARCHAR, as_locator VARCHAR, parameter_name VARCHAR, data_type VARCHAR,
    udt_catalog VARCHAR, udt_schema VARCHAR, udt_name VARCHAR, dtd_identifier VARCHAR, parameter_default VARCHAR
);
CREATE OR REPLACE TABLE infs.referential_constraints (
    constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR,
    unique_constraint_catalog VARCHAR, unique_constraint_schema VARCHAR, unique_constraint_name VARCHAR,
    match_option VARCHAR, update_rule VARCHAR, delete_rule VARCHAR
);
CREATE OR REPLACE TABLE infs.role_table_grants (
    grantor VARCHAR, grantee VARCHAR, table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR,
    privilege_type VARCHAR, is_grantable VARCHAR, with_hierarchy VARCHAR
);
CREATE OR REPLACE TABLE infs.routines (
    specific_catalog VARCHAR, specific_schema VARCHAR, specific_name VARCHAR, routine_catalog VARCHAR,
    routine_schema VARCHAR, routine_name VARCHAR, routine_type VARCHAR, data_type VARCHAR, type_udt_catalog VARCHAR,
    type_udt_schema VARCHAR, type_udt_name VARCHAR, routine_body VARCHAR, routine_definition VARCHAR,
    external_name VARCHAR, external_language VARCHAR, is_deterministic VARCHAR, sql_data_access VARCHAR,
    security_type VARCHAR
);
CREATE OR REPLACE TABLE infs.sequences (
    sequence_catalog VARCHAR, sequence_schema VARCHAR, sequence_name VARCHAR, data_type VARCHAR,
    numeric_precision INTEGER, numeric_precision_radix INTEGER, numeric_scale INTEGER, start_value VARCHAR,
    minimum_value VARCHAR, maximum_value VARCHAR, increment VARCHAR, cycle_option VARCHAR
);
CREATE OR REPLACE TABLE infs.table_privileges (
    grantor VARCHAR, grantee VARCHAR, table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR,
    privilege_type VARCHAR, is_grantable VARCHAR, with_hierarchy VARCHAR
);
CREATE OR REPLACE TABLE infs.triggers (
    trigger_catalog VARCHAR, trigger_schema VARCHAR, trigger_name VARCHAR, event_manipulation VARCHAR,
    event_object_catalog VARCHAR, event_object_schema VARCHAR, event_object_table VARCHAR, action_order INTEGER,
    action_condition VARCHAR, action_statement VARCHAR, action_orientation VARCHAR, action_timing VARCHAR,
    created TIMESTAMPTZ
);
CREATE OR REPLACE TABLE infs.usage_privileges (
    grantor VARCHAR, grantee VARCHAR, object_catalog VARCHAR, object_schema VARCHAR, object_name VARCHAR,
    object_type VARCHAR, privilege_type VARCHAR, is_grantable VARCHAR
);
CREATE OR REPLACE TABLE infs.user_defined_types (
    user_defined_type_catalog VARCHAR, user_defined_type_schema VARCHAR, user_defined_type_name VARCHAR,
    user_defined_type_category VARCHAR, is_instantiable VARCHAR, is_final VARCHAR
);
CREATE OR REPLACE TABLE infs.view_column_usage (
    view_catalog VARCHAR, view_schema VARCHAR, view_name VARCHAR, table_catalog VARCHAR, table_schema VARCHAR,
    table_name VARCHAR, column_name VARCHAR
);
CREATE OR REPLACE TABLE infs.view_table_usage (
    view_catalog VARCHAR, view_schema VARCHAR, view_name VARCHAR, table_catalog VARCHAR, table_schema VARCHAR,
    table_name VARCHAR
);
