-- PostgreSQL's catalog functions as macros. planner.batch.pg_compat sends calls here by name.

-- Parts of a qualified or quoted name, folded as identifiers are; n counts parts from the end. The macros name their
-- arguments as seldom as they can: calls in each other, as in SQLAlchemy's queries, grow by the product.
CREATE OR REPLACE MACRO pgf.name_part(s, n) AS list_transform(regexp_extract_all(s, '"(?:[^"]|"")*"|[^."]+'),
    lambda __part: if(__part LIKE '"%', replace(trim(__part, '"'), '""', '"'), lower(trim(__part))))[-n];

-- reg* types: `_in` turns a name into an OID, `_out` an OID into a name. `path` lists the schemas searched in order.
CREATE OR REPLACE MACRO pgf.to_regclass(s, path) AS coalesce(
    try_cast(s AS UINTEGER),
    (SELECT arg_min(__oid, coalesce(list_position(path, __schema), 0)) FROM pgf._class
     WHERE __name = pgf.name_part(s, 1) AND pgf.in_session(__database)
       AND coalesce(__schema = pgf.name_part(s, 2), list_contains(path, __schema))));
CREATE OR REPLACE MACRO pgf.regclass_in(s, path) AS
    coalesce(pgf.to_regclass(s, path), error('relation "' || replace(s, '"', '') || '" does not exist')::UINTEGER);
CREATE OR REPLACE MACRO pgf.regclass_out(o, path) AS CASE WHEN o = 0 THEN '-' ELSE coalesce(
    (SELECT if(coalesce(list_position(path, __schema) = list_min(list_transform(
                   __schemas, lambda __s: nullif(list_position(path, __s), 0))), false),
               '', pgf._ident(__schema) || '.') || pgf._ident(__name)
     FROM pgf._class WHERE __oid = o), o::VARCHAR) END;

CREATE OR REPLACE MACRO pgf._scalar_regtype(s) AS
    (SELECT min(__oid) FROM pgf._type
     WHERE lower(s) IN (__name, __typname, 'pg_catalog.' || __typname) OR
           regexp_replace(lower(s), '\s*\([^)]*\)', '') = __name OR
           __typname = CASE lower(s) WHEN 'int' THEN 'int4' WHEN 'decimal' THEN 'numeric' WHEN 'float' THEN 'float8' END
           OR (contains(s, '"') AND __typname = pgf.name_part(s, 1)
               AND __schema = coalesce(pgf.name_part(s, 2), 'pg_catalog'))
           OR (__schema <> 'pg_catalog' AND __name = s)
           OR (__schema <> 'pg_catalog' AND __typname = pgf.name_part(s, 1)
               AND __schema = coalesce(pgf.name_part(s, 2), __schema)));
-- An array's type has the name of its elements' after an underscore; a quoted name is a type's own.
CREATE OR REPLACE MACRO pgf.to_regtype(s) AS
    CASE WHEN ends_with(s, '[]')
         THEN (SELECT min(a.__oid) FROM pgf._type a, pgf._type t
               WHERE t.__oid = pgf._scalar_regtype(regexp_replace(s, '(\[\])+$', '')) AND a.__typname = '_' || t.__typname
                 AND a.__schema = t.__schema)
         ELSE pgf._scalar_regtype(s) END;
CREATE OR REPLACE MACRO pgf.regtype_in(s) AS coalesce(
    try_cast(s AS UINTEGER), pgf.to_regtype(s), error('type "' || replace(s, '"', '') || '" does not exist')::UINTEGER);
CREATE OR REPLACE MACRO pgf.regtype_out(o) AS
    CASE WHEN o = 0 THEN '-' ELSE coalesce((SELECT __name FROM pgf._type WHERE __oid = o), o::VARCHAR) END;

CREATE OR REPLACE MACRO pgf.to_regnamespace(s) AS
    (SELECT any_value(__oid) FROM pgf._namespace WHERE __name = pgf.name_part(s, 1) AND pgf.in_session(__database));
CREATE OR REPLACE MACRO pgf.regnamespace_in(s) AS coalesce(
    try_cast(s AS UINTEGER), pgf.to_regnamespace(s), error('schema "' || s || '" does not exist')::UINTEGER);
CREATE OR REPLACE MACRO pgf.regnamespace_out(o) AS
    coalesce((SELECT pgf._ident(__name) FROM pgf._namespace WHERE __oid = o), o::VARCHAR);

CREATE OR REPLACE MACRO pgf.to_regrole(s) AS (SELECT __oid FROM pgf._role WHERE __name = pgf.name_part(s, 1));
CREATE OR REPLACE MACRO pgf.regrole_in(s) AS coalesce(
    try_cast(s AS UINTEGER), pgf.to_regrole(s), error('role "' || s || '" does not exist')::UINTEGER);
CREATE OR REPLACE MACRO pgf.regrole_out(o) AS
    coalesce((SELECT pgf._ident(__name) FROM pgf._role WHERE __oid = o), o::VARCHAR);

-- Columns of type regproc hold names; '-' is OID 0. Users' functions are found in the schemas of a path, or their own.
CREATE OR REPLACE MACRO pgf._functions_named(s, path) AS coalesce(
    (SELECT nullif(list(__oid), []) FROM pgf._function
     WHERE __name = pgf.name_part(s, 1) AND coalesce(pgf.name_part(s, 2), 'pg_catalog') = 'pg_catalog'),
    (SELECT list(__oid) FROM pgf._sql_function
     WHERE pgf.in_session(__database) AND __name = pgf.name_part(s, 1)
       AND if(pgf.name_part(s, 2) IS NULL, list_contains(path, __schema), __schema = pgf.name_part(s, 2))), []);
CREATE OR REPLACE MACRO pgf._only(found) AS if(len(found) = 1, found[1], NULL);
CREATE OR REPLACE MACRO pgf.to_regproc(s, path) AS pgf._only(pgf._functions_named(s, path));
CREATE OR REPLACE MACRO pgf.regproc_in(s, path) AS CASE WHEN s = '-' THEN 0 ELSE coalesce(
    try_cast(s AS UINTEGER), pgf.to_regproc(s, path),
    error(if(len(pgf._functions_named(s, path)) > 1, 'more than one function named "' || s || '"',
             'function "' || s || '" does not exist'))::UINTEGER) END;
CREATE OR REPLACE MACRO pgf.regproc_out(o) AS
    coalesce((SELECT __name FROM pgf._function WHERE __oid = try_cast(o AS UINTEGER)),
             (SELECT pgf._ident(__name) FROM pgf._sql_function WHERE __oid = try_cast(o AS UINTEGER)), o::VARCHAR);

-- Columns of type regprocedure hold names with types. Users' functions differ in the number of their arguments.
CREATE OR REPLACE MACRO pgf._arguments_in(s) AS trim(regexp_replace(regexp_extract(s, '\((.*)\)\s*$', 1), '\([^()]*\)', '', 'g'));
CREATE OR REPLACE MACRO pgf._user_function_in(s, path) AS
    (SELECT min_by(__oid, coalesce(list_position(path, __schema), 0)) FROM pgf._sql_function
     WHERE pgf.in_session(__database) AND __name = pgf.name_part(split_part(s, '(', 1), 1)
       AND __count = if(pgf._arguments_in(s) = '', 0, len(string_split(pgf._arguments_in(s), ',')))
       AND if(pgf.name_part(split_part(s, '(', 1), 2) IS NULL, list_contains(path, __schema),
              __schema = pgf.name_part(split_part(s, '(', 1), 2)));
CREATE OR REPLACE MACRO pgf.to_regprocedure(s, path) AS coalesce(
    (SELECT min(__oid) FROM pgf._function
     WHERE __name = pgf.name_part(split_part(s, '(', 1), 1) AND contains(s, '(')
       AND __arguments = array_to_string(list_transform(string_split(pgf._arguments_in(s), ','), lambda __a: coalesce(map {
               'int': 'integer', 'int4': 'integer', 'int8': 'bigint', 'int2': 'smallint', 'float4': 'real', 'float8': 'double precision',
               'varchar': 'character varying', 'bool': 'boolean', 'decimal': 'numeric', 'timestamp': 'timestamp without time zone',
               'timestamptz': 'timestamp with time zone', 'time': 'time without time zone'}[trim(__a)], trim(__a))), ', ')),
    pgf._user_function_in(s, path));
CREATE OR REPLACE MACRO pgf.regprocedure_in(s, path) AS CASE WHEN s = '-' THEN 0 ELSE coalesce(
    try_cast(s AS UINTEGER), if(contains(s, '('), NULL, error('expected a left parenthesis')::UINTEGER),
    pgf.to_regprocedure(s, path), error('function "' || s || '" does not exist')::UINTEGER) END;
CREATE OR REPLACE MACRO pgf.regprocedure_out(o) AS coalesce(
    (SELECT __name || '(' || replace(__arguments, ', ', ',') || ')' FROM pgf._function WHERE __oid = try_cast(o AS UINTEGER)),
    (SELECT pgf._ident(__name) || '(' || __types || ')' FROM pgf._sql_function WHERE __oid = try_cast(o AS UINTEGER)), o::VARCHAR);

-- Names and definitions of objects.
CREATE OR REPLACE MACRO pgf.format_type(o, m) AS
    CASE WHEN o IS NULL THEN NULL
         WHEN o = 0 THEN '-'
         WHEN o = 1700 AND m > 4 THEN format('numeric({},{})', ((m - 4) >> 16) & 65535, (m - 4) & 65535)
         WHEN o = 1231 AND m > 4 THEN format('numeric({},{})[]', ((m - 4) >> 16) & 65535, (m - 4) & 65535)
         WHEN o = 1043 AND m > 4 THEN format('character varying({})', m - 4)
         WHEN o = 1042 AND m > 4 THEN format('character({})', m - 4)
         WHEN o = 1186 AND m >= 0 THEN 'interval' || coalesce(map {
             4: ' year', 2: ' month', 8: ' day', 1024: ' hour', 2048: ' minute', 4096: ' second', 6: ' year to month',
             1032: ' day to hour', 3080: ' day to minute', 7176: ' day to second', 3072: ' hour to minute', 7168: ' hour to second', 6144: ' minute to second'}[m >> 16], '')
              || if(m & 65535 < 7, format('({})', m & 65535), '')
         WHEN o IN (1083, 1114, 1184) AND m >= 0
         THEN format('{}({}) with{} time zone', if(o = 1083, 'time', 'timestamp'), m, if(o = 1184, '', 'out'))
         WHEN o IN (2249, 2287) AND m > 0 THEN (SELECT __name FROM pgf._struct WHERE __typmod = m)
         ELSE coalesce((SELECT __name FROM pgf._type WHERE __oid = o), '???') END;
CREATE OR REPLACE MACRO pgf.pg_get_userbyid(o) AS
    coalesce((SELECT __name FROM pgf._role WHERE __oid = o), 'unknown (OID=' || o || ')');
CREATE OR REPLACE MACRO pgf.pg_get_viewdef(o) AS (SELECT __query FROM pgf._view_query WHERE __oid = o),
    (o, pretty) AS (SELECT __query FROM pgf._view_query WHERE __oid = o);
CREATE OR REPLACE MACRO pgf.pg_get_indexdef(o) AS (SELECT __definition FROM pgf._index WHERE __oid = o),
    (o, n, pretty) AS (SELECT CASE WHEN n <> 0 THEN __columns[n] WHEN pretty THEN __pretty ELSE __definition END
                       FROM pgf._index WHERE __oid = o);
CREATE OR REPLACE MACRO pgf.pg_get_expr(e, o) AS e::VARCHAR, (e, o, pretty) AS e::VARCHAR;

-- Comments, by the class, named as PostgreSQL's catalogs.
CREATE OR REPLACE MACRO pgf.obj_description(o) AS
    (SELECT any_value(__text) FROM pgf._comment WHERE __oid = o AND __column = 0 AND __class <> 1262),
    (o, c) AS (SELECT any_value(__text) FROM pgf._comment
               WHERE __oid = o AND __column = 0 AND __class = CASE c WHEN 'pg_class' THEN 1259 WHEN 'pg_namespace' THEN 2615
                                                           WHEN 'pg_constraint' THEN 2606 END);
CREATE OR REPLACE MACRO pgf.shobj_description(o, c) AS
    (SELECT any_value(__text) FROM pgf._comment WHERE __oid = o AND __class = CASE c WHEN 'pg_database' THEN 1262 END);
CREATE OR REPLACE MACRO pgf.col_description(o, n) AS
    (SELECT any_value(__text) FROM pgf._comment WHERE __oid = o AND __class = 1259 AND n <> 0 AND __column = n);

-- Functions, built in and of users.
CREATE OR REPLACE MACRO pgf.pg_get_function_result(o) AS coalesce(
    (SELECT any_value(__result) FROM pgf._function WHERE __oid = o),
    (SELECT __result FROM pgf._sql_function WHERE __oid = o));
CREATE OR REPLACE MACRO pgf.pg_get_function_arguments(o) AS coalesce(
    (SELECT any_value(__arguments) FROM pgf._function WHERE __oid = o),
    (SELECT __arguments FROM pgf._sql_function WHERE __oid = o));
CREATE OR REPLACE MACRO pgf.pg_get_function_identity_arguments(o) AS pgf.pg_get_function_arguments(o);
CREATE OR REPLACE MACRO pgf.pg_get_functiondef(o) AS (SELECT __definition FROM pgf._sql_function WHERE __oid = o);

-- Built-in functions, rules, triggers, partitions and extended statistics have no definitions.
CREATE OR REPLACE MACRO pgf.pg_get_function_sqlbody(o) AS NULL::VARCHAR;
CREATE OR REPLACE MACRO pgf.pg_get_ruledef(o) AS NULL::VARCHAR, (o, pretty) AS NULL::VARCHAR;
CREATE OR REPLACE MACRO pgf.pg_get_triggerdef(o) AS NULL::VARCHAR, (o, pretty) AS NULL::VARCHAR;
CREATE OR REPLACE MACRO pgf.pg_get_partkeydef(o) AS NULL::VARCHAR;
CREATE OR REPLACE MACRO pgf.pg_get_partition_constraintdef(o) AS NULL::VARCHAR;
CREATE OR REPLACE MACRO pgf.pg_get_serial_sequence(t, c) AS
    (SELECT __name FROM pgf._serial WHERE __table = t AND __column = c);
CREATE OR REPLACE MACRO pgf.pg_get_statisticsobjdef_columns(o) AS NULL::VARCHAR;
CREATE OR REPLACE MACRO pgf.pg_get_statisticsobjdef(o) AS NULL::VARCHAR;
CREATE OR REPLACE MACRO pgf.pg_partition_ancestors(o) AS unnest([]::UINTEGER[]);
CREATE OR REPLACE MACRO pgf.pg_partition_ancestors(o) AS TABLE SELECT o::UINTEGER AS relid WHERE false;
CREATE OR REPLACE MACRO pgf.pg_partition_tree(o) AS TABLE
    SELECT o::UINTEGER AS relid, o::UINTEGER AS parentrelid, true AS isleaf, 0 AS level WHERE false;
CREATE OR REPLACE MACRO pgf.pg_options_to_table(o) AS TABLE
    SELECT NULL::VARCHAR AS option_name, NULL::VARCHAR AS option_value WHERE false;
CREATE OR REPLACE MACRO pgf.pg_get_keywords() AS TABLE
    SELECT keyword_name AS word, keyword_category[1] AS catcode, true AS barelabel, keyword_category AS catdesc,
           'can be bare label' AS baredesc
    FROM duckdb_keywords();

-- Visibility: the object is in the first schema of the search path that has its name.
CREATE OR REPLACE MACRO pgf._is_found(path, place, places) AS
    coalesce(list_position(path, place) = list_min(list_transform(places, lambda __s: nullif(list_position(path, __s), 0))), false);
-- As PostgreSQL does, a foreign key names its parent's schema only where the name alone would not find it.
CREATE OR REPLACE MACRO pgf._parent(path, schema, schemas, name) AS
    CASE WHEN schema IS NULL THEN '' WHEN pgf._is_found(path, schema, schemas) THEN name
         ELSE pgf._ident(schema) || '.' || name END;
CREATE OR REPLACE MACRO pgf.pg_get_constraintdef(o, path) AS
    (SELECT __text || pgf._parent(path, __schema, __schemas, __name) || __end FROM pgf._constraint WHERE __oid = o),
    (o, pretty, path) AS (SELECT if(pretty, __pretty, __text) || pgf._parent(path, __schema, __schemas, __name) || __end
                          FROM pgf._constraint WHERE __oid = o);
CREATE OR REPLACE MACRO pgf.pg_table_is_visible(o, path) AS
    coalesce((SELECT pgf._is_found(path, __schema, __schemas) FROM pgf._class WHERE __oid = o), false);
CREATE OR REPLACE MACRO pgf.pg_type_is_visible(o) AS o IS NOT NULL;
CREATE OR REPLACE MACRO pgf.pg_function_is_visible(o) AS o IS NOT NULL;
CREATE OR REPLACE MACRO pgf.pg_operator_is_visible(o) AS o IS NOT NULL;
CREATE OR REPLACE MACRO pgf.pg_opclass_is_visible(o) AS o IS NOT NULL;
CREATE OR REPLACE MACRO pgf.pg_opfamily_is_visible(o) AS o IS NOT NULL;
CREATE OR REPLACE MACRO pgf.pg_collation_is_visible(o) AS o IS NOT NULL;
CREATE OR REPLACE MACRO pgf.pg_conversion_is_visible(o) AS o IS NOT NULL;
CREATE OR REPLACE MACRO pgf.pg_statistics_obj_is_visible(o) AS o IS NOT NULL;
CREATE OR REPLACE MACRO pgf.pg_ts_config_is_visible(o) AS o IS NOT NULL;
CREATE OR REPLACE MACRO pgf.pg_ts_dict_is_visible(o) AS o IS NOT NULL;
CREATE OR REPLACE MACRO pgf.pg_ts_parser_is_visible(o) AS o IS NOT NULL;
CREATE OR REPLACE MACRO pgf.pg_ts_template_is_visible(o) AS o IS NOT NULL;

-- Access control lists: PostgreSQL's are NULL without grants; RisingWave's always have the owner.
CREATE OR REPLACE MACRO pgf._granted(thing) AS
    (SELECT list_prepend(__owners, __granted) FROM pgf._acls WHERE __object = thing AND __granted IS NOT NULL);
CREATE OR REPLACE MACRO pgf._acl(thing) AS
    (SELECT list_prepend(__owners, coalesce(__granted, [])) FROM pgf._acls WHERE __object = thing);

-- Privileges. pg_compat adds the session's user as the first argument where a call has none. System objects are
-- readable for all. Members of a role hold its privileges and act as the role; a privilege on a relation holds for its
-- columns.
CREATE OR REPLACE MACRO pgf._role_named(who) AS
    (SELECT any_value(__name) FROM pgf._role WHERE who::VARCHAR IN (__name, __oid::VARCHAR));
CREATE OR REPLACE MACRO pgf._role_name(who) AS
    coalesce(pgf._role_named(who), if(who IS NULL, NULL, if(try_cast(who AS UINTEGER) IS NOT NULL, '',
             error('role "' || who || '" does not exist')::VARCHAR)));
-- Privileges of a list that are not among those known.
CREATE OR REPLACE MACRO pgf._unknown(privileges, known) AS
    list_filter(string_split(privileges, ','), lambda __p: NOT list_contains(string_split(known, ' '),
        upper(trim(regexp_replace(__p, '\s+WITH\s+GRANT\s+OPTION\s*$', '', 'i')))));
CREATE OR REPLACE MACRO pgf._known(privileges, known) AS
    if(len(pgf._unknown(privileges, known)) > 0,
       error('unrecognized privilege type: "' || trim(pgf._unknown(privileges, known)[1]) || '"')::VARCHAR, privileges);
CREATE OR REPLACE MACRO pgf._roles_of(who) AS (SELECT any_value(__roles) FROM pgf._role WHERE __name = who);
CREATE OR REPLACE MACRO pgf._is_super(who) AS (SELECT bool_or(__is_super) FROM pgf._role WHERE __name = who);
CREATE OR REPLACE MACRO pgf._was_granted(who, thing, privileges, columns) AS
    (SELECT count(*) > 0 FROM pgf._privilege
     WHERE __object = thing AND (__grantee = 'public' OR list_contains(pgf._roles_of(who), __grantee))
       AND (__column IS NULL OR columns = '*' OR columns IN (__column, __attnum::VARCHAR))
       AND len(list_filter(string_split(upper(privileges), ','), lambda __p:
               trim(regexp_replace(__p, '\s+WITH\s+GRANT\s+OPTION\s*$', '')) = __privilege
               AND (__is_grantable OR NOT contains(__p, 'GRANT')))) > 0);
CREATE OR REPLACE MACRO pgf._holds(who, thing, privileges, columns) AS CASE
    WHEN who IS NULL OR thing IS NULL OR privileges IS NULL THEN NULL
    WHEN pgf._is_super(who) THEN true
    ELSE coalesce(list_contains(coalesce(pgf._roles_of(who), []), (SELECT any_value(__owner) FROM pgf._owner WHERE __object = thing)),
                  regexp_matches(upper(privileges), 'SELECT|USAGE|EXECUTE'))
      OR pgf._was_granted(who, thing, privileges, columns) END;
-- A database by its name or OID.
CREATE OR REPLACE MACRO pgf._database_in(thing) AS coalesce(
    (SELECT any_value(__oid) FROM pgf._database WHERE thing IN (__name, __oid::VARCHAR)),
    if(thing IS NULL OR try_cast(thing AS UINTEGER) IS NOT NULL, NULL,
       error('database "' || thing || '" does not exist')::UINTEGER));
CREATE OR REPLACE MACRO pgf.has_database_privilege(who, thing, privileges) AS
    pgf._holds(pgf._role_name(who), pgf._database_in(thing::VARCHAR),
               pgf._known(privileges, 'CREATE TEMPORARY TEMP CONNECT'), '');
CREATE OR REPLACE MACRO pgf.has_schema_privilege(who, thing, privileges) AS
    pgf._holds(pgf._role_name(who), pgf.regnamespace_in(thing::VARCHAR), pgf._known(privileges, 'CREATE USAGE'), '');
CREATE OR REPLACE MACRO pgf.has_table_privilege(who, thing, privileges, path) AS
    pgf._holds(pgf._role_name(who), pgf.regclass_in(thing::VARCHAR, path),
               pgf._known(privileges, 'SELECT INSERT UPDATE DELETE TRUNCATE REFERENCES TRIGGER RULE'), '');
CREATE OR REPLACE MACRO pgf.has_column_privilege(who, thing, col, privileges, path) AS
    pgf._holds(pgf._role_name(who), pgf.regclass_in(thing::VARCHAR, path),
               pgf._known(privileges, 'SELECT INSERT UPDATE REFERENCES'), col::VARCHAR);
CREATE OR REPLACE MACRO pgf.has_any_column_privilege(who, thing, privileges, path) AS
    pgf._holds(pgf._role_name(who), pgf.regclass_in(thing::VARCHAR, path),
               pgf._known(privileges, 'SELECT INSERT UPDATE REFERENCES'), '*');
CREATE OR REPLACE MACRO pgf.pg_has_role(who, role, privileges) AS
    coalesce(pgf._is_super(pgf._role_name(who)), false)
    OR coalesce(list_contains(pgf._roles_of(pgf._role_name(who)), pgf._role_name(role)), false);
CREATE OR REPLACE MACRO pgf.has_sequence_privilege(who, thing, privileges, path) AS
    pgf._holds(pgf._role_name(who), pgf.regclass_in(thing::VARCHAR, path),
               pgf._known(privileges, 'USAGE SELECT UPDATE'), '');

-- A function by its OID or as `schema.name(type, …)`.
CREATE OR REPLACE MACRO pgf._function_in(s, path) AS coalesce(
    try_cast(s AS UINTEGER),
    if(contains(s, '('), NULL, error('expected a left parenthesis')::UINTEGER),
    pgf._user_function_in(s, path),
    (SELECT min(__oid) FROM pgf._function WHERE __name = pgf.name_part(split_part(s, '(', 1), 1)),
    error('function "' || s || '" does not exist')::UINTEGER);
CREATE OR REPLACE MACRO pgf.has_function_privilege(who, thing, privileges, path) AS
    pgf._holds(pgf._role_name(who), pgf._function_in(thing::VARCHAR, path), pgf._known(privileges, 'EXECUTE'), '');
CREATE OR REPLACE MACRO pgf.has_tablespace_privilege(a, b) AS true, (a, b, c) AS true;

-- Sizes, from a variable that the server sets for a statement that may read them (catalog/lake/sizes.py); none of
-- indexes.
CREATE OR REPLACE MACRO pgf._sizes() AS
    getvariable('relation_sizes')::MAP(UINTEGER, STRUCT("rows" BIGINT, bytes BIGINT, total BIGINT));
CREATE OR REPLACE VIEW pgf._size AS
SELECT e.key AS __oid, e.value."rows" AS __rows, e.value.bytes AS __bytes
FROM (SELECT unnest(map_entries(pgf._sizes())) AS e);
CREATE OR REPLACE MACRO pgf.pg_table_size(o) AS if(o IS NULL, NULL, coalesce(pgf._sizes()[o].bytes, 0));
CREATE OR REPLACE MACRO pgf.pg_relation_size(o) AS if(o IS NULL, NULL, coalesce(pgf._sizes()[o].bytes, 0)),
    (o, fork) AS if(o IS NULL, NULL, if(fork = 'main', coalesce(pgf._sizes()[o].bytes, 0), 0));
CREATE OR REPLACE MACRO pgf.pg_total_relation_size(o) AS if(o IS NULL, NULL, coalesce(pgf._sizes()[o].total, 0));
CREATE OR REPLACE MACRO pgf.pg_indexes_size(o) AS 0::BIGINT;
CREATE OR REPLACE MACRO pgf.pg_database_size(d) AS
    (SELECT coalesce(sum(pgf._sizes()[c.__oid].total), 0)::BIGINT FROM pgf._class c
     WHERE c.__database = (SELECT any_value(__name) FROM pgf._database WHERE d::VARCHAR IN (__name, __oid::VARCHAR)));
CREATE OR REPLACE MACRO pgf.pg_tablespace_size(t) AS
    (SELECT coalesce(sum(pgf._sizes()[c.__oid].total), 0)::BIGINT FROM pgf._class c);
-- PostgreSQL's rounding (src/backend/utils/adt/dbsize.c): all units except bytes are rounded half up.
CREATE OR REPLACE MACRO pgf._size_pretty(n) AS
    CASE WHEN n < 10240 THEN n || ' bytes'
         WHEN n // 512 < 20479 THEN (n // 512 + 1) // 2 || ' kB'
         WHEN n // 524288 < 20479 THEN (n // 524288 + 1) // 2 || ' MB'
         WHEN n // 536870912 < 20479 THEN (n // 536870912 + 1) // 2 || ' GB'
         WHEN n // 549755813888 < 20479 THEN (n // 549755813888 + 1) // 2 || ' TB'
         ELSE (n // 562949953421312 + 1) // 2 || ' PB' END;
CREATE OR REPLACE MACRO pgf.pg_size_pretty(n) AS
    if(n < 0, '-', '') || pgf._size_pretty(abs(n::HUGEINT));
CREATE OR REPLACE MACRO pgf._bytes_of(unit) AS
    MAP {'': 1, 'bytes': 1, 'kb': 1024, 'mb': 1048576, 'gb': 1073741824, 'tb': 1099511627776,
         'pb': 1125899906842624}[lower(unit)];
CREATE OR REPLACE MACRO pgf._size_bytes(s, number, unit) AS
    CASE WHEN s IS NULL THEN NULL
         WHEN try_cast(number AS DOUBLE) IS NULL THEN pg.raise('22023', 'invalid size: "' || s || '"')::BIGINT
         WHEN pgf._bytes_of(unit) IS NULL THEN pg.raise_with('22023', 'invalid size: "' || s || '"',
              'Invalid size unit: "' || unit || '".', 'Valid units are "bytes", "kB", "MB", "GB", "TB", and "PB".')::BIGINT
         ELSE (number::DECIMAL(38,9) * pgf._bytes_of(unit))::BIGINT END;
CREATE OR REPLACE MACRO pgf.pg_size_bytes(s) AS pgf._size_bytes(s,
    regexp_extract(s, '^\s*([+-]?\d*\.?\d*([eE][+-]?\d+)?)', 1), trim(regexp_replace(s, '^\s*[+-]?\d*\.?\d*([eE][+-]?\d+)?', '')));
CREATE OR REPLACE MACRO pgf.pg_relation_filenode(o) AS o;
CREATE OR REPLACE MACRO pgf.pg_tablespace_location(o) AS '';

-- Server settings and information.
CREATE OR REPLACE MACRO pgf.current_setting(settings, name) AS
    coalesce(settings[lower(name)], (SELECT __setting FROM pgf._setting WHERE __name = lower(name)),
             error('unrecognized configuration parameter "' || name || '"')),
    (settings, name, missing_ok) AS
    coalesce(settings[lower(name)], (SELECT __setting FROM pgf._setting WHERE __name = lower(name)));
CREATE OR REPLACE MACRO pgf.getdatabaseencoding() AS 'UTF8';
CREATE OR REPLACE MACRO pgf.pg_client_encoding() AS 'UTF8';
CREATE OR REPLACE MACRO pgf.pg_encoding_to_char(e) AS CASE e WHEN 6 THEN 'UTF8' WHEN 0 THEN 'SQL_ASCII' ELSE '' END;
CREATE OR REPLACE MACRO pgf.pg_char_to_encoding(e) AS CASE upper(e) WHEN 'UTF8' THEN 6 WHEN 'SQL_ASCII' THEN 0 ELSE -1 END;
CREATE OR REPLACE MACRO pgf.pg_is_in_recovery() AS (SELECT __is_standby FROM pgc._server);
CREATE OR REPLACE MACRO pgf.rw_recovery_status() AS 'RUNNING';
CREATE OR REPLACE MACRO pgf.pg_relation_is_publishable(o) AS false;
CREATE OR REPLACE MACRO pgf.pg_relation_is_updatable(o, b) AS
    if(EXISTS (SELECT 1 FROM pgf._class WHERE __oid = o AND __is_table), 28, 0);
CREATE OR REPLACE MACRO pgf.pg_column_is_updatable(o, n, b) AS pgf.pg_relation_is_updatable(o, b) = 28;
CREATE OR REPLACE MACRO pgf.pg_index_column_has_property(o, n, p) AS NULL::BOOLEAN;
CREATE OR REPLACE MACRO pgf.pg_indexam_has_property(o, p) AS NULL::BOOLEAN;
CREATE OR REPLACE MACRO pgf.pg_stat_get_numscans(o) AS 0::BIGINT;
CREATE OR REPLACE MACRO pgf.pg_stat_get_live_tuples(o) AS 0::BIGINT;
CREATE OR REPLACE MACRO pgf.pg_advisory_lock(k) AS '', (k, l) AS '';
CREATE OR REPLACE MACRO pgf.pg_advisory_xact_lock(k) AS '', (k, l) AS '';
CREATE OR REPLACE MACRO pgf.pg_try_advisory_lock(k) AS true, (k, l) AS true;
CREATE OR REPLACE MACRO pgf.pg_try_advisory_xact_lock(k) AS true, (k, l) AS true;
CREATE OR REPLACE MACRO pgf.pg_advisory_unlock(k) AS true, (k, l) AS true;
CREATE OR REPLACE MACRO pgf.pg_advisory_unlock_all() AS '';
CREATE OR REPLACE MACRO pgf.pg_notify(c, p) AS '';
CREATE OR REPLACE MACRO pgf.inet_server_addr() AS NULL::VARCHAR;
CREATE OR REPLACE MACRO pgf.inet_server_port() AS NULL::INTEGER;
CREATE OR REPLACE MACRO pgf.inet_client_addr() AS NULL::VARCHAR;
CREATE OR REPLACE MACRO pgf.inet_client_port() AS NULL::INTEGER;

-- Arrays: PostgreSQL's bounds start at 1 and are NULL for an empty array; int2vector's start at 0.
CREATE OR REPLACE MACRO pgf.vector_subscripts
    (v, n) AS list_transform(if(n = 1, range(len(v)), []), lambda __i: __i::INTEGER),
    (v, n, is_reverse) AS list_transform(if(n = 1, range(len(v)), []), lambda __i: if(is_reverse, len(v) - 1 - __i, __i)::INTEGER);
CREATE OR REPLACE MACRO pgf.vector_element(a, n) AS a[n + 1];
CREATE OR REPLACE MACRO pgf.vector_slice(a, low, high) AS a[coalesce(low, 0) + 1 : coalesce(high + 1, len(a))];
CREATE OR REPLACE MACRO pgf._pg_expandarray(a) AS
    unnest(list_transform(a, lambda __x, __i: {'x': __x, 'n': __i::INTEGER}));
CREATE OR REPLACE MACRO pgf._pg_expandarray(a) AS TABLE SELECT unnest(a) AS x, unnest(range(1, len(a) + 1))::INTEGER AS n;
