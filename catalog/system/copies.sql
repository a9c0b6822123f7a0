-- Copies of the lake's catalog: each scan of a lake table takes milliseconds, and psql's queries make dozens.
-- catalog.system.system_views.refresh makes them again after every change. They have created relations only, unless stated.

CREATE OR REPLACE TABLE pgc._roles AS
SELECT id::UINTEGER AS id, name, is_super, is_super OR create_db AS create_db, is_super OR create_user AS create_user,
       can_login, verifier IS NOT NULL AS has_password, valid_until
FROM lake.sparkwave.users;
CREATE OR REPLACE TABLE pgc._memberships AS
SELECT r.id AS role_id, m.id AS member_id, coalesce(g.id, 0)::UINTEGER AS grantor_id, s.role, s.member, s.is_admin
FROM lake.sparkwave.memberships s JOIN pgc._roles r ON r.name = s.role JOIN pgc._roles m ON m.name = s.member
LEFT JOIN pgc._roles g ON g.name = s.grantor;

-- `__roles` are the role itself and all roles that it is a member of, directly or through others.
CREATE OR REPLACE TABLE pgf._role AS
WITH RECURSIVE reached AS (
    SELECT name AS who, name AS role FROM pgc._roles
    UNION
    SELECT who, m.role FROM reached JOIN pgc._memberships m ON m.member = reached.role
)
SELECT id AS __oid, name AS __name, is_super AS __is_super, list(role ORDER BY role) AS __roles
FROM pgc._roles JOIN reached ON who = name GROUP BY ALL;

CREATE OR REPLACE TABLE pgc._namespaces AS
SELECT id::UINTEGER AS id, database, name, owner FROM lake.sparkwave.schemas;

CREATE OR REPLACE TABLE pgc._databases AS
SELECT id::UINTEGER AS id, name, owner, resource_group, barrier_interval_ms, checkpoint_frequency
FROM lake.sparkwave.databases;
CREATE OR REPLACE TABLE pgf._database AS SELECT id AS __oid, name AS __name FROM pgc._databases;

-- All relations, also those being created and those that Postgres has no relation for (indexes, sinks); without the new
-- rows of ALTER MATERIALIZED VIEW … AS, which no name refers to.
CREATE OR REPLACE TABLE pgc._all_relations AS
SELECT r.created, r.id::UINTEGER AS id, r.database, r.schema, n.id AS schema_id, r.name, r.kind, coalesce(r.shown, r.definition) AS definition, r.key, r.upstreams,
       coalesce(o.id, 1) AS owner_id, r.owner, r.initialized_at, r.created_at, r.append_only, r.lake_schema, r.lake_name,
       r.details
FROM lake.sparkwave.relations r
JOIN pgc._namespaces n ON n.database = r.database AND n.name = r.schema
LEFT JOIN pgc._roles o ON o.name = r.owner
WHERE r.replaces IS NULL;

CREATE OR REPLACE TABLE pgc._subscriptions AS
SELECT r.*, s.retention_s FROM lake.sparkwave.subscriptions s JOIN pgc._all_relations r ON r.id = s.relation_id;
-- Without relations being created.
CREATE OR REPLACE TABLE pgc._created_relations AS SELECT * EXCLUDE (created) FROM pgc._all_relations WHERE created;
-- The tables and views among them. Subscriptions have no rows: only rw_subscriptions and rw_depend have them.
CREATE OR REPLACE TABLE pgc._relations AS
SELECT * EXCLUDE (details) FROM pgc._created_relations WHERE kind NOT IN ('index', 'sink', 'subscription', 'sequence');

-- Sequences; `table_id` and `column_name` (its lake name) are the owning column. `default_text` is a default that draws
-- from the sequence, as PostgreSQL shows it with `public` in the search path.
CREATE OR REPLACE TABLE pgc._sequences AS
SELECT id, database, schema, schema_id, name, owner, owner_id, details->>'type' AS type,
       (details->>'start')::BIGINT AS start, (details->>'increment')::BIGINT AS increment,
       (details->>'minimum')::BIGINT AS minimum, (details->>'maximum')::BIGINT AS maximum,
       (details->>'cycles')::BOOLEAN AS cycles, (details->>'cache')::BIGINT AS cache,
       (details->>'table')::UINTEGER AS table_id, details->>'column' AS column_name, details->>'identity' AS identity,
       format('nextval(''{}''::regclass)', if(schema = 'public', '', pgf._ident(schema) || '.') || pgf._ident(name))
           AS default_text
FROM pgc._created_relations WHERE kind = 'sequence';

-- Privileges: owners, grants, and both in the form of PostgreSQL's access control lists.
CREATE OR REPLACE TABLE pgf._owner AS
SELECT id AS __object, owner AS __owner,
       CASE kind WHEN 'table' THEN 'arwd' WHEN 'sequence' THEN 'rwU' ELSE 'r' END AS __letters
FROM pgc._all_relations
UNION ALL SELECT id::UINTEGER, owner, 'X' FROM lake.sparkwave.functions
UNION ALL SELECT id::UINTEGER, owner, 'U' FROM lake.sparkwave.connections
UNION ALL SELECT id, owner, 'UC' FROM pgc._namespaces
UNION ALL SELECT id, owner, 'Cc' FROM pgc._databases;
CREATE OR REPLACE TABLE pgc._grants AS
SELECT object_id::UINTEGER AS object_id, grantee, privilege, grantor, is_grantable, column_name FROM lake.sparkwave.grants;
CREATE OR REPLACE TABLE pgc._acl_entries AS
WITH letter AS (
    FROM (VALUES ('INSERT', 'a', 1), ('SELECT', 'r', 2), ('UPDATE', 'w', 3), ('DELETE', 'd', 4), ('USAGE', 'U', 1),
                 ('CREATE', 'C', 2), ('CONNECT', 'c', 3), ('EXECUTE', 'X', 1)) AS fixed(privilege, letter, place)
)
SELECT object_id, column_name, grantee, grantor,
       if(grantee = 'public', '', grantee) || '=' || string_agg(letter || if(is_grantable, '*', ''), '' ORDER BY place)
           || '/' || grantor AS entry
FROM pgc._grants JOIN letter USING (privilege) GROUP BY object_id, column_name, grantee, grantor;
CREATE OR REPLACE TABLE pgf._acls AS
SELECT __object, any_value(o.__owner || '=' || o.__letters || '/' || o.__owner) AS __owners,
       list(entry ORDER BY grantee, grantor) FILTER (entry IS NOT NULL) AS __granted
FROM pgf._owner o LEFT JOIN pgc._acl_entries e ON e.object_id = __object AND column_name IS NULL GROUP BY ALL;

-- Privileges on objects to come, one row a kind of objects. As in PostgreSQL, those for a whole database include the
-- owner's, and what everybody may do unless that was revoked.
CREATE OR REPLACE TABLE pgc._default_acls AS
WITH letter AS (
    FROM (VALUES ('INSERT', 'a', 1), ('SELECT', 'r', 2), ('UPDATE', 'w', 3), ('DELETE', 'd', 4), ('USAGE', 'U', 1),
                 ('CREATE', 'C', 2), ('EXECUTE', 'X', 1)) AS fixed(privilege, letter, place)
), entry AS (
    SELECT database_id, role, schema_id, kind, grantee,
           if(grantee = 'public', '', grantee) || '=' || string_agg(letter || if(is_grantable, '*', ''), '' ORDER BY place)
               FILTER (NOT is_revoked) || '/' || role AS text
    FROM lake.sparkwave.default_grants JOIN letter USING (privilege)
    GROUP BY database_id, role, schema_id, kind, grantee
)
SELECT (3800000000 + row_number() OVER (ORDER BY database_id, role, schema_id, kind))::UINTEGER AS oid, d.name AS database,
       r.id AS role_id, coalesce(schema_id, 0)::UINTEGER AS schema_id, kind,
       if(schema_id IS NULL,
          [role || '=' || CASE kind WHEN 'table' THEN 'arwd' WHEN 'sequence' THEN 'rwU' WHEN 'function' THEN 'X'
                                    WHEN 'schema' THEN 'UC' ELSE 'r' END || '/' || role]
          || if(kind = 'function' AND count(*) FILTER (grantee = 'public') = 0, ['=X/' || role], []), [])
       || coalesce(list(text ORDER BY grantee) FILTER (text IS NOT NULL), []) AS acl
FROM entry e JOIN pgc._databases d ON d.id = database_id JOIN pgc._roles r ON r.name = role
GROUP BY database_id, d.name, role, r.id, schema_id, kind;

-- Users' types. The OIDs after a type's own are its array type's and that of the relation of its fields.
CREATE OR REPLACE TABLE pgc._user_types AS
SELECT t.id::UINTEGER AS oid, (t.id + 1)::UINTEGER AS array_oid, (t.id + 2)::UINTEGER AS relation_oid, t.database, t.schema,
       n.id AS schema_id, t.name, if(t.schema = 'public', '', pgf._ident(t.schema) || '.') || pgf._ident(t.name) AS shown,
       CASE WHEN t.domain IS NOT NULL THEN 'd' WHEN len(t.field_names) > 0 THEN 'c' ELSE 'e' END AS kind,
       coalesce(o.id, 1)::UINTEGER AS owner_id, t.labels, t.field_names, t.field_oids::UINTEGER[] AS field_oids,
       if(t.domain IS NULL, 0, t.field_oids[1])::UINTEGER AS base_oid,
       coalesce((t.domain::JSON->>'not_null')::BOOLEAN, false) AS not_null, t.domain::JSON->>'default' AS default_text,
       (t.domain::JSON->'checks')::JSON[] AS checks
FROM lake.sparkwave.types t
JOIN pgc._namespaces n ON n.database = t.database AND n.name = t.schema
LEFT JOIN pgc._roles o ON o.name = t.owner;
CREATE OR REPLACE TABLE pgc._labels AS
SELECT (3600000000 + row_number() OVER (ORDER BY type_oid, place))::UINTEGER AS id, *
FROM (SELECT database, oid AS type_oid, generate_subscripts(labels, 1)::FLOAT AS place, unnest(labels) AS label
      FROM pgc._user_types);
CREATE OR REPLACE TABLE pgc._user_type_fields AS
SELECT f.*, coalesce(t.length, -1) AS length
FROM (SELECT database, relation_oid, place, name,
             CASE oid WHEN 1043 THEN 25 WHEN 1015 THEN 1009 ELSE oid END AS oid  -- a field's varchar is text
      FROM (SELECT database, relation_oid, generate_subscripts(field_names, 1) AS place, unnest(field_names) AS name,
                   unnest(field_oids) AS oid
            FROM pgc._user_types)) f
LEFT JOIN pgc._all_types t ON t.oid = f.oid;
-- The rows of pg_type for users' types and their array types.
CREATE OR REPLACE TABLE pgc._user_type_rows AS
SELECT u.database, own.oid, if(is_array, '_' || u.name, u.name), schema_id, owner_id,
       CASE WHEN is_array THEN -1 WHEN u.kind = 'e' THEN 4 ELSE coalesce(b.length, -1) END,
       NOT is_array AND (u.kind = 'e' OR coalesce(b.by_value, false)), if(is_array, 'b', u.kind),
       CASE WHEN is_array THEN 'A' WHEN u.kind = 'd' THEN b.category ELSE upper(u.kind) END, false, true, ',',
       if(u.kind = 'c' AND NOT is_array, relation_oid, 0), if(is_array, 'array_subscript_handler', '-'),
       if(is_array, u.oid, 0), if(is_array, 0, u.array_oid),
       own.functions || '_in', if(u.kind = 'd' AND NOT is_array, regexp_replace(b.input, 'in$', 'out'), own.functions || '_out'),
       own.functions || '_recv',
       if(u.kind = 'd' AND NOT is_array, regexp_replace(b.receive, 'recv$', 'send'), own.functions || '_send'),
       '-', '-', '-', coalesce(b.align, if(u.kind = 'e', 'i', 'd')), if(u.kind = 'e' AND NOT is_array, 'p', 'x'),
       u.not_null AND NOT is_array, if(is_array, 0, u.base_oid), -1, 0, if(b.category = 'S', 100, 0)::UINTEGER,
       NULL, if(is_array, NULL, u.default_text), NULL
FROM pgc._user_types u LEFT JOIN pgc._all_types b ON b.oid = u.base_oid,
     LATERAL (SELECT u.oid AS oid, false AS is_array,
                     CASE u.kind WHEN 'e' THEN 'enum' WHEN 'c' THEN 'record' ELSE 'domain' END AS functions
              UNION ALL SELECT u.array_oid, true, 'array') own;
CREATE OR REPLACE TABLE pgf._type AS
SELECT oid AS __oid, name AS __name, typname AS __typname, 'pg_catalog' AS __schema FROM pgc._all_types
UNION ALL SELECT oid, shown, name, schema FROM pgc._user_types
UNION ALL SELECT array_oid, shown || '[]', '_' || name, schema FROM pgc._user_types;

-- SQL functions, with the OIDs of their types.
CREATE OR REPLACE TABLE pgc._sql_functions AS
WITH type AS (
    SELECT name, oid FROM pgc._types UNION ALL SELECT name || '[]', array_oid FROM pgc._types
), written AS (
    SELECT text, coalesce(if(ends_with(text, '[]'), u.array_oid, u.oid), t.oid)::UINTEGER AS oid,
           coalesce(u.shown || regexp_extract(text, '(\[\])*$'), replace(text, 'numeric(38,19)', 'numeric')) AS shown
    FROM (SELECT DISTINCT unnest(argument_types || [result_type]) AS text FROM lake.sparkwave.functions)
    LEFT JOIN type t ON t.name = regexp_replace(text, '[(<].*[)>]', '')
    LEFT JOIN pgc._user_types u ON u.oid = pg._user_type_in(text)
), argument AS (
    SELECT a.id, list(w.oid ORDER BY a.place) AS oids, list(w.shown ORDER BY a.place) AS types
    FROM (SELECT id, unnest(argument_types) AS text, generate_subscripts(argument_types, 1) AS place
          FROM lake.sparkwave.functions) a
    JOIN written w USING (text)
    GROUP BY a.id
)
SELECT f.id::UINTEGER AS id, f.database, f.schema, n.id AS schema_id, f.name, f.owner, coalesce(o.id, 1)::UINTEGER AS owner_id,
       f.argument_names, coalesce(a.types, []) AS argument_types, coalesce(a.oids, []) AS argument_oids,
       r.shown AS result_type, r.oid AS result_oid, f.body, f.definition,
       coalesce(f.language, 'sql') AS language, coalesce(f.is_strict, false) AS is_strict,
       f.column_names, f.column_names IS NOT NULL AS returns_set, coalesce(f.is_aggregate, false) AS is_aggregate
FROM lake.sparkwave.functions f
JOIN pgc._namespaces n ON n.database = f.database AND n.name = f.schema
JOIN written r ON r.text = f.result_type
LEFT JOIN argument a ON a.id = f.id
LEFT JOIN pgc._roles o ON o.name = f.owner;

-- What PostgreSQL prints of them; a function's body is what follows SELECT.
CREATE OR REPLACE TABLE pgf._sql_function AS
SELECT id AS __oid, database AS __database, schema AS __schema, name AS __name, len(argument_oids) AS __count,
       array_to_string(argument_types, ',') AS __types,
       array_to_string(list_transform(list_zip(argument_names, argument_types), lambda a: if(a[1] = '', '', pgf._ident(a[1]) || ' ') || a[2]), ', ')
           AS __arguments,
       CASE WHEN NOT returns_set THEN result_type
            WHEN NOT regexp_matches(definition, '\bRETURNS\s+TABLE\b', 'i') THEN 'SETOF ' || result_type
            WHEN len(column_names) = 1 THEN 'TABLE(' || pgf._ident(column_names[1]) || ' ' || result_type || ')'
            ELSE regexp_replace(result_type, '^struct<(.*)>$', 'TABLE(\1)') END AS __result,
       if(is_aggregate, NULL,
          format(E'CREATE OR REPLACE FUNCTION {}.{}({})\n RETURNS {}\n LANGUAGE {}\n{}AS ${}${}${}$\n',
                 pgf._ident(schema), pgf._ident(name), __arguments, __result, language,
                 if(language = 'python', if(is_strict, E' IMMUTABLE STRICT\n', E' IMMUTABLE\n'), ''),
                 if(contains(source, '$function$'), 'functionx', 'function'), source,
                 if(contains(source, '$function$'), 'functionx', 'function'))) AS __definition
FROM (SELECT *, if(language = 'python', body, 'SELECT ' || body) AS source FROM pgc._sql_functions);

-- The types of struct columns, which clients see as `record`: by its type modifier, format_type identifies the type.
CREATE OR REPLACE TABLE pgf._struct AS
SELECT row_number() OVER (ORDER BY type)::INTEGER AS __typmod, type AS __type,
       replace(type, 'numeric(38,19)', 'numeric') AS __name
FROM (SELECT DISTINCT type FROM lake.sparkwave.columns WHERE type LIKE 'struct<%');

-- All columns, hidden ones too; `attnum` counts the visible ones and is NULL for the others.
CREATE OR REPLACE TABLE pgc._columns AS
SELECT c.relation_id::UINTEGER AS relation_id, r.kind AS relation_kind, c.position, c.name,
       CASE WHEN u.oid IS NOT NULL THEN u.shown || regexp_extract(c.type, '(\[\])*$')
            ELSE replace(c.type, 'numeric(38,19)', 'numeric') END AS type, c.is_hidden,
       r.kind = 'table' AND (c.not_null OR list_contains(r.key, c.name)) AS not_null,
       list_contains(r.key, c.name) AS is_key,
       c.generated, c.lake_name,
       if(c.is_hidden, NULL,
          row_number() OVER (PARTITION BY c.relation_id, c.is_hidden ORDER BY c.position))::SMALLINT AS attnum,
       if(c.type LIKE '%[]', coalesce(u.array_oid, t.array_oid), coalesce(u.oid, t.oid))::UINTEGER AS type_oid,
       if(c.type LIKE '%[]', -1, coalesce(if(u.kind = 'e', 4, NULL), t.length, -1))::SMALLINT AS length,
       (length(regexp_extract(c.type, '(\[\])*$')) // 2)::SMALLINT AS dimensions,
       -- Users do not write the digits of a numeric without precision.
       coalesce(if(c.type LIKE 'numeric(38,19)%', -1, NULL),
                (try_cast(regexp_extract(c.type, '^numeric\((\d+),(\d+)\)', 1) AS INTEGER) << 16)
                | try_cast(regexp_extract(c.type, '^numeric\((\d+),(\d+)\)', 2) AS INTEGER) + 4,
                s.__typmod, (r.details->'lengths'->>coalesce(c.lake_name, c.name))::INTEGER + 4, -1)::INTEGER AS typmod,
       -- As PostgreSQL shows it: a text literal with its type, a sequence by its name, and no default of an identity
       -- column.
       CASE WHEN q.identity IS NOT NULL THEN NULL WHEN q.id IS NOT NULL THEN q.default_text
            WHEN regexp_full_match(c.column_default, '''([^'']|'''')*''')
            THEN c.column_default || '::' || coalesce(u.shown, regexp_replace(c.type, '\(.*\)', ''))
            ELSE c.column_default END AS default_text,
       q.identity, q.id AS sequence_id, a.acl
FROM lake.sparkwave.columns c
JOIN pgc._created_relations r ON r.id = c.relation_id
LEFT JOIN (SELECT object_id, column_name, list(entry ORDER BY grantee, grantor) AS acl FROM pgc._acl_entries GROUP BY ALL) a
    ON a.object_id = c.relation_id AND a.column_name = c.name
LEFT JOIN pgc._sequences q ON c.column_default = format('nextval(''{}''::regclass)', q.id)
LEFT JOIN pgf._struct s ON s.__type = c.type
LEFT JOIN pgc._types t ON t.name = regexp_replace(c.type, '([(<].*[)>])?(\[\])*$', '')
LEFT JOIN pgc._user_types u ON u.oid = pg._user_type_in(c.type)
WHERE NOT (c.is_hidden AND c.generated IS NOT NULL);  -- those have values of earlier types, for views alone

-- CHECK constraints; those that an earlier version has stored do not tell their columns.
CREATE OR REPLACE TABLE pgc._checks AS
WITH declared AS (
    SELECT id, database, schema, schema_id, name AS relation_name, unnest((details->'checks')::JSON[]) AS listed,
           generate_subscripts((details->'checks')::JSON[], 1) AS place
    FROM pgc._created_relations WHERE kind IN ('table', 'source') AND details IS NOT NULL
), read AS (
    SELECT d.id, d.place, list(c.attnum ORDER BY c.attnum) AS attnums, list(c.name ORDER BY c.attnum) AS columns
    FROM declared d JOIN pgc._columns c
        ON c.relation_id = d.id AND NOT c.is_hidden AND list_contains((listed->>'columns')::VARCHAR[], c.name)
    GROUP BY d.id, d.place
)
SELECT (3500000000 + row_number() OVER (ORDER BY d.id, d.place))::UINTEGER AS id, d.id AS relation_id, database, schema,
       schema_id, relation_name, listed->>'name' AS name, listed->>'condition' AS condition, attnums, columns
FROM declared d LEFT JOIN read r ON r.id = d.id AND r.place = d.place;

CREATE OR REPLACE TABLE pgf._privilege AS
SELECT object_id AS __object, grantee AS __grantee, privilege AS __privilege, is_grantable AS __is_grantable,
       column_name AS __column, attnum AS __attnum
FROM pgc._grants LEFT JOIN pgc._columns c ON c.relation_id = object_id AND c.name = column_name;

-- Created indexes: `keys` has the numbers of their columns, 0 for expressions; the texts are PostgreSQL's.
CREATE OR REPLACE TABLE pgc._created_indexes AS
WITH shaped AS (  -- columns of earlier types have their plain names
    SELECT *, upstreams[1]::UINTEGER AS relation_id,
           from_json(regexp_replace(details, '\\"\?([^"\\]*) \d+\\"', '\1', 'g'), '{"distributed": "INTEGER",
           "includes_all": "BOOLEAN", "is_unique": "BOOLEAN", "condition": "VARCHAR", "keys": [{"name": "VARCHAR", "source": "VARCHAR", "is_expression": "BOOLEAN",
           "descending": "BOOLEAN", "nulls_first": "BOOLEAN"}]}') AS shape
    FROM pgc._created_relations WHERE kind = 'index'
), known AS (  -- the upstream's columns by the names in the index, which may be older
    SELECT i.id, map(list(k.name), list(c.attnum)) AS numbers, map(list(k.name), list(c.name)) AS names,
           map(list(k.name), list(if(c.dimensions > 0, 2277, c.type_oid))) AS types
    FROM shaped i JOIN pgc._columns c ON c.relation_id = i.relation_id AND NOT c.is_hidden
    JOIN (SELECT relation_id, name AS now,
                 coalesce(list_filter(list_zip(former_names, former_until), lambda f: f[2] > id)[1][1], name) AS name, id
          FROM lake.sparkwave.columns JOIN (SELECT id, relation_id AS indexed FROM shaped) ON indexed = relation_id) k
        ON k.id = i.id AND k.now = c.name
    GROUP BY i.id
), included AS (
    SELECT i.id, list(c.name ORDER BY c.position) FILTER (c.attnum > len(i.shape.keys)) AS names
    FROM shaped i JOIN pgc._columns c ON c.relation_id = i.id AND NOT c.is_hidden GROUP BY i.id
)
SELECT i.id, i.relation_id, i.database, i.schema, i.schema_id, i.name, i.owner_id, i.owner, i.definition,
       i.initialized_at, i.created_at, r.kind, r.name AS relation_name, r.schema AS relation_schema,
       list_transform(coalesce(n.names, []), lambda c: t.names[c]) AS included,
       list_transform(coalesce(n.names, []), lambda c: t.numbers[c]) AS included_numbers,
       list_transform(i.shape.keys, lambda k: if(k.is_expression, 0, t.numbers[k.source])::SMALLINT) AS key_numbers,
       list_transform(i.shape.keys, lambda k: if(k.is_expression, 25, t.types[k.source])::UINTEGER) AS key_types,
       list_transform(i.shape.keys, lambda k: (if(k.descending, 1, 0) + if(k.nulls_first, 2, 0))::SMALLINT) AS options,
       list_transform(i.shape.keys, lambda k: CASE WHEN NOT k.is_expression THEN pgf._ident(t.names[k.source])
           WHEN regexp_full_match(k.source, '\w+\([^()]*\)') THEN k.source
           ELSE '(' || k.source || ')' END) AS texts,
       list_transform(i.shape.keys, lambda k: CASE WHEN k.descending = k.nulls_first THEN if(k.descending, ' DESC', '')
           WHEN k.descending THEN ' DESC NULLS LAST' ELSE ' NULLS FIRST' END) AS orders,
       list_transform(i.shape.keys, lambda k: if(k.is_expression, k.source, t.names[k.source]) || if(k.descending, ' DESC', ' ASC'))
           AS shown,
       coalesce(i.shape.includes_all, false) AS includes_all, coalesce(i.shape.is_unique, false) AS is_unique,
       if(i.shape.condition <> '', '(' || i.shape.condition || ')', NULL) AS condition,
       list_transform(i.shape.keys[:i.shape.distributed], lambda k: if(k.is_expression, k.source, t.names[k.source]))
           AS distributed
FROM shaped i
JOIN pgc._created_relations r ON r.id = i.relation_id
JOIN known t ON t.id = i.id
LEFT JOIN included n ON n.id = i.id;

-- The keys of materialized views whose clients see all of its columns: rows are unique, though no index says so.
CREATE OR REPLACE TABLE pgc._view_keys AS
SELECT r.database, r.schema, r.name AS relation_name, r.name || '_pkey' AS name,
       list(c.name ORDER BY list_position(r.key, c.name)) AS columns
FROM pgc._created_relations r JOIN pgc._columns c ON c.relation_id = r.id AND list_contains(r.key, c.name)
WHERE r.kind = 'materialized view'
GROUP BY ALL
HAVING NOT bool_or(c.is_hidden);

-- UNIQUE of tables, which is declared and not enforced.
CREATE OR REPLACE TABLE pgc._uniques AS
WITH place AS (
    SELECT relation_id, map(list(coalesce(lake_name, name)), list(attnum)) AS numbers,
           map(list(coalesce(lake_name, name)), list(name)) AS names,
           map(list(coalesce(lake_name, name)), list(if(dimensions > 0, 2277, type_oid))) AS types
    FROM pgc._columns WHERE NOT is_hidden GROUP BY relation_id
), declared AS (
    SELECT id AS relation_id, kind, database, schema, schema_id, name AS relation_name, owner_id,
           unnest(from_json(details->'uniques', '[{"id": "UINTEGER", "name": "VARCHAR", "columns": ["VARCHAR"],
                  "included": ["VARCHAR"], "nulls_distinct": "BOOLEAN", "deferral": "VARCHAR"}]')) AS key
    FROM pgc._created_relations WHERE kind IN ('table', 'source') AND details IS NOT NULL
)
SELECT d.*, list_transform(key.columns || key.included, lambda c: p.numbers[c]) AS attnums,
       list_transform(key.columns, lambda c: p.names[c]) AS columns,
       list_transform(key.columns, lambda c: p.types[c]::UINTEGER) AS key_types,
       list_transform(key.included, lambda c: p.names[c]) AS included
FROM declared d JOIN place p USING (relation_id);

-- All indexes: primary keys, UNIQUE, and created ones. As in PostgreSQL, a materialized view has no key, and an index
-- only the columns that CREATE INDEX names: dbt would drop an index with other columns. Of `is_unique` only a primary
-- key is enforced, so that the others are not valid (PostgreSQL, pg_index.indisvalid: "If it is unique, the uniqueness
-- property is not guaranteed true").
CREATE OR REPLACE TABLE pgc._indexes AS
SELECT * EXCLUDE (types), list_transform(columns, lambda c: pgf._ident(c)) AS texts, list_transform(columns, lambda c: '') AS orders,
       list_transform(columns, lambda c: 0::SMALLINT) AS options, []::VARCHAR[] AS included, true AS is_unique,
       true AS nulls_distinct, '' AS deferral, types AS key_types, NULL::VARCHAR AS condition
FROM (SELECT (r.id + 1000000000)::UINTEGER AS id, (r.id + 2000000000)::UINTEGER AS constraint_id, r.id AS relation_id,
             r.database, r.schema, r.schema_id, r.schema AS relation_schema, r.name AS relation_name,
             coalesce(nullif(r.details->>'key_name', ''), r.name || '_pkey') AS name, r.kind, r.owner_id, true AS is_primary,
             list(c.attnum ORDER BY list_position(r.key, c.name)) AS attnums,
             list(c.name ORDER BY list_position(r.key, c.name)) AS columns,
             list(if(c.dimensions > 0, 2277, c.type_oid)::UINTEGER ORDER BY list_position(r.key, c.name)) AS types
      FROM pgc._created_relations r
      JOIN pgc._columns c ON c.relation_id = r.id AND list_contains(r.key, c.name)
      WHERE r.kind = 'table'
      GROUP BY ALL
      HAVING NOT bool_or(c.is_hidden))
UNION ALL
SELECT id, NULL, relation_id, database, schema, schema_id, relation_schema, relation_name, name, kind, owner_id, false,
       key_numbers || if(includes_all, [], included_numbers), NULL, texts, orders, options,
       if(includes_all, [], included), is_unique, true, '', key_types, condition
FROM pgc._created_indexes
UNION ALL
SELECT (key.id + 1000000000)::UINTEGER, (key.id + 2000000000)::UINTEGER, relation_id, database, schema, schema_id, schema,
       relation_name, key.name, kind, owner_id, false, attnums, columns, list_transform(columns, lambda c: pgf._ident(c)),
       list_transform(columns, lambda c: ''), list_transform(columns, lambda c: 0::SMALLINT), included, true,
       key.nulls_distinct, key.deferral, key_types, NULL
FROM pgc._uniques;

-- FOREIGN KEY of tables, which is declared and not enforced; `key_id` is the index of the columns that it references.
CREATE OR REPLACE TABLE pgc._foreign_keys AS
WITH place AS (
    SELECT relation_id, map(list(coalesce(lake_name, name)), list(attnum)) AS numbers,
           map(list(coalesce(lake_name, name)), list(name)) AS names
    FROM pgc._columns WHERE NOT is_hidden GROUP BY relation_id
), declared AS (
    SELECT id AS relation_id, database, schema, schema_id, name AS relation_name,
           unnest(from_json(details->'foreign_keys', '[{"id": "UINTEGER", "name": "VARCHAR", "columns": ["VARCHAR"],
                  "parent": "UINTEGER", "parent_columns": ["VARCHAR"], "parent_key": "UINTEGER", "is_full": "BOOLEAN",
                  "on_update": "VARCHAR", "on_delete": "VARCHAR", "set_columns": ["VARCHAR"], "deferral": "VARCHAR"}]')) AS key
    FROM pgc._created_relations WHERE kind IN ('table', 'source') AND details IS NOT NULL
)
SELECT (key.id + 2000000000)::UINTEGER AS id, key.name AS name, d.*, i.relation_id AS parent_id, i.relation_schema AS parent_schema,
       i.relation_name AS parent_name, i.id AS key_id, if(i.constraint_id IS NULL, NULL, i.name) AS key_name, i.attnums AS key_attnums,
       list_transform(key.columns, lambda c: own.numbers[c]) AS attnums,
       list_transform(key.columns, lambda c: own.names[c]) AS columns,
       list_transform(key.parent_columns, lambda c: their.numbers[c]) AS parent_attnums,
       list_transform(key.parent_columns, lambda c: their.names[c]) AS parent_columns,
       list_transform(key.set_columns, lambda c: own.numbers[c]) AS set_attnums,
       list_transform(key.set_columns, lambda c: own.names[c]) AS set_columns
FROM declared d
JOIN pgc._indexes i ON i.id = if(key.parent_key IN (SELECT id FROM pgc._created_indexes), key.parent_key,
                                 coalesce(key.parent_key, key.parent) + 1000000000)
JOIN place own ON own.relation_id = d.relation_id
JOIN place their ON their.relation_id = i.relation_id;

-- Comments: `__class` is the catalog of the object (pg_class, pg_namespace, pg_database, pg_constraint), `__column` is 0
-- for no column, and -1 for a hidden one, `_row_id`. Those on constraints are stored for their table (catalog/stores/comment_store.py).
CREATE OR REPLACE TABLE pgf._comment AS
SELECT o.id AS __oid, o.class AS __class, if(k.is_hidden, -1, coalesce(k.attnum, 0))::INTEGER AS __column, o.database AS __database,
       c.text AS __text
FROM lake.sparkwave.comments c
JOIN (SELECT id, 1259::UINTEGER AS class, database FROM pgc._created_relations
      UNION ALL SELECT id, 1259, database FROM pgc._indexes WHERE constraint_id IS NOT NULL
      UNION ALL SELECT id, 2615, database FROM pgc._namespaces
      UNION ALL SELECT id, 1262, NULL FROM pgc._databases) o ON o.id = c.object_id
LEFT JOIN pgc._columns k ON k.relation_id = c.object_id AND k.name = c.column_name
WHERE c.column_name IS NULL OR k.name IS NOT NULL
UNION ALL
SELECT o.id, 2606, 0, o.database, c.text
FROM lake.sparkwave.comments c
JOIN (SELECT constraint_id AS id, relation_id, if(is_primary, '', name) AS name, database
      FROM pgc._indexes WHERE constraint_id IS NOT NULL
      UNION ALL SELECT id, relation_id, key.name, database FROM pgc._foreign_keys
      UNION ALL SELECT id, relation_id, name, database FROM pgc._checks) o
    ON o.relation_id + 2000000000 = c.object_id AND o.name = c.column_name;

-- Lookup tables of the functions, with columns no caller has (see base.sql).
CREATE OR REPLACE TABLE pgf._namespace AS
SELECT id AS __oid, name AS __name, database AS __database FROM pgc._namespaces
UNION ALL SELECT id, name, NULL FROM pgc._system_namespaces;

-- `__schemas` are all schemas with a relation of this name.
CREATE OR REPLACE TABLE pgf._class AS
SELECT *, list(__schema) OVER (PARTITION BY __database, __name) AS __schemas
FROM (SELECT id AS __oid, database AS __database, schema AS __schema, name AS __name, kind = 'table' AS __is_table
      FROM pgc._relations
      UNION ALL SELECT id, database, schema, name, false FROM pgc._indexes
      UNION ALL SELECT id, database, schema, name, false FROM pgc._sequences
      UNION ALL SELECT relation_oid, database, schema, name, false FROM pgc._user_types WHERE len(field_names) > 0
      UNION ALL SELECT id, NULL, schema, name, false FROM pgc._system_relations);

CREATE OR REPLACE TABLE pgf._serial AS
SELECT s.table_id AS __table, c.name AS __column, pgf._ident(s.schema) || '.' || pgf._ident(s.name) AS __name
FROM pgc._sequences s
JOIN pgc._columns c ON c.relation_id = s.table_id AND coalesce(c.lake_name, c.name) = s.column_name;

CREATE OR REPLACE TABLE pgf._view_query AS
SELECT id AS __oid,
       regexp_extract(definition, '(?is)^(?:[^"'']|"[^"]*"|''[^'']*'')*?\sAS\s+(.*)$', 1) AS __query
FROM pgc._relations WHERE kind NOT IN ('table', 'source');

CREATE OR REPLACE TABLE pgf._index AS
SELECT id AS __oid, constraint_id AS __constraint_oid, names AS __columns, listed AS __list, includes AS __includes,
       definition AS __definition,
       -- Pretty-printed definitions leave out the schema `public`, which is in the search path.
       if(relation_schema = 'public', replace(definition, ' ON public.', ' ON '), definition) AS __pretty,
       if(is_primary, 'PRIMARY KEY', if(nulls_distinct, 'UNIQUE', 'UNIQUE NULLS NOT DISTINCT')) || ' (' || listed || ')'
           || includes || if(deferral = '', '', ' ' || deferral) AS __constraint
-- DuckDB plans an expression anew wherever its alias is used beside it, so each of these has a query of its own.
FROM (SELECT *, texts || quoted AS names,
             format('CREATE {} {} ON {}.{} USING btree ({}){}{}{}', if(is_unique, 'UNIQUE INDEX', 'INDEX'), own_name, on_schema,
                    on_relation, listed, includes, if(nulls_distinct, '', ' NULLS NOT DISTINCT'),
                    coalesce(' WHERE ' || condition, '')) AS definition
      FROM (SELECT *, array_to_string(list_transform(list_zip(texts, orders), lambda __k: __k[1] || __k[2]), ', ') AS listed,
                   if(included = [], '', ' INCLUDE (' || array_to_string(quoted, ', ') || ')') AS includes
            FROM (SELECT *, list_transform(included, lambda __c: pgf._ident(__c)) AS quoted, pgf._ident(name) AS own_name,
                         pgf._ident(relation_schema) AS on_schema, pgf._ident(relation_name) AS on_relation
                  FROM pgc._indexes)));

-- The conditions of domains.
CREATE OR REPLACE TABLE pgc._domain_checks AS
SELECT (3700000000 + row_number() OVER (ORDER BY oid, place))::UINTEGER AS id, oid AS type_oid, database, schema_id,
       listed->>'name' AS name, regexp_replace(listed->>'condition', '\bvalue\b', 'VALUE', 'g') AS condition
FROM (SELECT oid, database, schema_id, unnest(checks) AS listed, generate_subscripts(checks, 1) AS place
      FROM pgc._user_types WHERE kind = 'd');
-- Definitions of constraints; that of a foreign key has the name of its parent between `__text` and `__end`.
CREATE OR REPLACE TABLE pgf._constraint AS
SELECT __constraint_oid AS __oid, __constraint AS __text, __text AS __pretty, NULL AS __schema, []::VARCHAR[] AS __schemas,
       '' AS __name, '' AS __end
FROM pgf._index WHERE __constraint_oid IS NOT NULL
UNION ALL
SELECT f.id, format('FOREIGN KEY ({}) REFERENCES ', pgf._quoted(columns)) AS text, text, parent_schema, c.__schemas,
       pgf._ident(parent_name),
       format('({}){}{}{}{}{} NOT VALID', pgf._quoted(parent_columns), if(key.is_full, ' MATCH FULL', ''),
              if(key.on_update = 'NO ACTION', '', ' ON UPDATE ' || key.on_update),
              if(key.on_delete = 'NO ACTION', '', ' ON DELETE ' || key.on_delete),
              if(set_columns = [], '', ' (' || pgf._quoted(set_columns) || ')'),
              if(key.deferral = '', '', ' ' || key.deferral))
FROM pgc._foreign_keys f JOIN pgf._class c ON c.__oid = parent_id
UNION ALL
SELECT id, 'CHECK ((' || condition || '))', 'CHECK (' || condition || ')', NULL, [], '', ''
FROM (SELECT id, condition FROM pgc._checks UNION ALL SELECT id, condition FROM pgc._domain_checks);
