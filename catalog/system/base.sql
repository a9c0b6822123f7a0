-- Facts that never change while the server runs: types, roles, the functions that read types, access methods.
-- `pgc._types` (name, oid, array_oid, length) is filled from catalog.types.BASES before this file runs.

-- The columns of pg_type besides its numbers, by the name that catalog.types prints.
CREATE OR REPLACE TABLE pgc._type_details AS
FROM (VALUES
    ('boolean',                     'bool',        'B', true,  true,  'c', 'boolin',          'boolrecv',        2436),
    ('smallint',                    'int2',        'N', false, true,  's', 'int2in',          'int2recv',        2404),
    ('integer',                     'int4',        'N', false, true,  'i', 'int4in',          'int4recv',        2406),
    ('bigint',                      'int8',        'N', false, true,  'd', 'int8in',          'int8recv',        2408),
    ('real',                        'float4',      'N', false, true,  'i', 'float4in',        'float4recv',      2424),
    ('double precision',            'float8',      'N', true,  true,  'd', 'float8in',        'float8recv',      2426),
    ('numeric',                     'numeric',     'N', false, false, 'i', 'numeric_in',      'numeric_recv',    2460),
    ('character varying',           'varchar',     'S', false, false, 'i', 'varcharin',       'varcharrecv',     2432),
    ('text',                        'text',        'S', true,  false, 'i', 'textin',          'textrecv',        2414),
    ('bytea',                       'bytea',       'U', false, false, 'i', 'byteain',         'bytearecv',       2412),
    ('date',                        'date',        'D', false, true,  'i', 'date_in',         'date_recv',       2468),
    ('time without time zone',      'time',        'D', false, true,  'd', 'time_in',         'time_recv',       2470),
    ('timestamp without time zone', 'timestamp',   'D', false, true,  'd', 'timestamp_in',    'timestamp_recv',  2474),
    ('timestamp with time zone',    'timestamptz', 'D', true,  true,  'd', 'timestamptz_in',  'timestamptz_recv', 2476),
    ('interval',                    'interval',    'T', true,  false, 'd', 'interval_in',     'interval_recv',   2478),
    ('json',                        'json',        'U', false, false, 'i', 'json_in',         'json_recv',       324),
    ('jsonb',                       'jsonb',       'U', false, false, 'i', 'jsonb_in',        'jsonb_recv',      3805),
    ('uuid',                        'uuid',        'U', false, false, 'c', 'uuid_in',         'uuid_recv',       2961),
    ('oid',                         'oid',         'N', true,  true,  'i', 'oidin',           'oidrecv',         2418)
) AS detail(name, typname, category, is_preferred, by_value, align, input, receive, receive_oid);

-- Types that no column here can have, but that clients look up or that system columns have in PostgreSQL.
CREATE OR REPLACE TABLE pgc._foreign_types AS
FROM (VALUES
    ('"char"',       'char',         18,   1002, 1,  'b', 'Z', 'charin',         'charrecv',         2434),
    ('name',         'name',         19,   1003, 64, 'b', 'S', 'namein',         'namerecv',         2422),
    ('int2vector',   'int2vector',   22,   1006, -1, 'b', 'A', 'int2vectorin',   'int2vectorrecv',   2410),
    ('regproc',      'regproc',      24,   1008, 4,  'b', 'N', 'regprocin',      'regprocrecv',      2444),
    ('tid',          'tid',          27,   1010, 6,  'b', 'U', 'tidin',          'tidrecv',          2438),
    ('xid',          'xid',          28,   1011, 4,  'b', 'U', 'xidin',          'xidrecv',          2440),
    ('oidvector',    'oidvector',    30,   1013, -1, 'b', 'A', 'oidvectorin',    'oidvectorrecv',    2420),
    ('xml',          'xml',          142,  143,  -1, 'b', 'U', 'xml_in',         'xml_recv',         2898),
    ('unknown',      'unknown',      705,  0,    -2, 'p', 'X', 'unknownin',      'unknownrecv',      2416),
    ('money',        'money',        790,  791,  8,  'b', 'N', 'cash_in',        'cash_recv',        2492),
    ('inet',         'inet',         869,  1041, -1, 'b', 'I', 'inet_in',        'inet_recv',        2496),
    ('character',    'bpchar',       1042, 1014, -1, 'b', 'S', 'bpcharin',       'bpcharrecv',       2430),
    ('time with time zone', 'timetz', 1266, 1270, 12, 'b', 'D', 'timetz_in',     'timetz_recv',      2472),
    ('bit',          'bit',          1560, 1561, -1, 'b', 'V', 'bit_in',         'bit_recv',         2456),
    ('bit varying',  'varbit',       1562, 1563, -1, 'b', 'V', 'varbit_in',      'varbit_recv',      2458),
    ('regprocedure', 'regprocedure', 2202, 2207, 4,  'b', 'N', 'regprocedurein', 'regprocedurerecv', 2446),
    ('regoper',      'regoper',      2203, 2208, 4,  'b', 'N', 'regoperin',      'regoperrecv',      2448),
    ('regclass',     'regclass',     2205, 2210, 4,  'b', 'N', 'regclassin',     'regclassrecv',     2452),
    ('regtype',      'regtype',      2206, 2211, 4,  'b', 'N', 'regtypein',      'regtyperecv',      2454),
    ('regrole',      'regrole',      4096, 4097, 4,  'b', 'N', 'regrolein',      'regrolerecv',      4094),
    ('regnamespace', 'regnamespace', 4089, 4090, 4,  'b', 'N', 'regnamespacein', 'regnamespacerecv', 4087),
    ('record',       'record',       2249, 2287, -1, 'p', 'P', 'record_in',      'record_recv',      2402),
    ('cstring',      'cstring',      2275, 1263, -2, 'p', 'P', 'cstring_in',     'cstring_recv',     2500),
    ('"any"',        'any',          2276, 0,    4,  'p', 'P', 'any_in',         '-',                0),
    ('anyarray',     'anyarray',     2277, 0,    -1, 'p', 'P', 'anyarray_in',    'anyarray_recv',    2502),
    ('void',         'void',         2278, 0,    4,  'p', 'P', 'void_in',        'void_recv',        3120),
    ('trigger',      'trigger',      2279, 0,    4,  'p', 'P', 'trigger_in',     '-',                0),
    ('anyelement',   'anyelement',   2283, 0,    4,  'p', 'P', 'anyelement_in',  '-',                0),
    ('anynonarray',  'anynonarray',  2776, 0,    4,  'p', 'P', 'anynonarray_in', '-',                0),
    ('anycompatible', 'anycompatible', 5077, 0,  4,  'p', 'P', 'anycompatible_in', '-',              0),
    ('anycompatiblearray', 'anycompatiblearray', 5078, 0, -1, 'p', 'P', 'anycompatiblearray_in', 'anycompatiblearray_recv', 5090)
) AS foreign_type(name, typname, oid, array_oid, length, kind, category, input, receive, receive_oid);

-- Every type and array type, in the columns that the views and functions below need.
CREATE OR REPLACE TABLE pgc._all_types AS
WITH element AS (
    SELECT t.name, d.typname, t.oid, t.array_oid, t.length, 'b' AS kind, d.category, d.is_preferred, d.by_value,
           d.align, d.input, d.receive, d.receive_oid
    FROM pgc._types t JOIN pgc._type_details d USING (name)
    UNION ALL BY NAME
    SELECT name, typname, oid, array_oid, length, kind, category, false AS is_preferred,
           length IN (1, 4, 8) AS by_value, 'i' AS align, input, receive, receive_oid
    FROM pgc._foreign_types
)
SELECT oid::UINTEGER AS oid, name, typname, length::SMALLINT AS length, kind, category, is_preferred, by_value, align,
       CASE typname WHEN 'name' THEN 18 WHEN 'int2vector' THEN 21 WHEN 'oidvector' THEN 26 ELSE 0 END::UINTEGER AS element_oid,
       array_oid::UINTEGER AS array_oid, input, receive, receive_oid::UINTEGER AS receive_oid
FROM element
UNION ALL
SELECT array_oid::UINTEGER, name || '[]', '_' || typname, (-1)::SMALLINT, kind, if(kind = 'p', 'P', 'A'), false, false,
       if(align = 'd', 'd', 'i'), oid::UINTEGER, 0::UINTEGER, 'array_in', 'array_recv', 2400::UINTEGER
FROM element WHERE array_oid <> 0;

-- Lookup tables of the functions. Their columns have names that no caller's column has, because a macro's argument is
-- pasted into its subquery and would be resolved as a column of that name. The tables have the functions that
-- statements call (pg_proc.sql), and those that pg_type names: input, output and the like, with PostgreSQL's OIDs where
-- a driver looks for one.
CREATE OR REPLACE TABLE pgc._functions AS
WITH argument AS (
    SELECT p.oid, list(t.oid ORDER BY place) AS oids, string_agg(t.name, ', ' ORDER BY place) AS names,
           last(t.element_oid ORDER BY place) AS last_element
    FROM (SELECT oid, unnest(string_split(arguments, ' ')) AS typname, generate_subscripts(string_split(arguments, ' '), 1) AS place
          FROM pgc._procedures WHERE arguments <> '') p
    JOIN pgc._all_types t USING (typname) GROUP BY p.oid
)
SELECT p.oid::UINTEGER AS oid, p.name, p.kind, p.volatility, p.is_strict, p.returns_set, t.oid AS result_oid,
       if(p.returns_set, 'SETOF ', '') || t.name AS result, coalesce(a.oids, []) AS argument_oids,
       coalesce(a.names, '') AS arguments, if(p.is_variadic, coalesce(nullif(a.last_element, 0), 2276), 0)::UINTEGER AS variadic_oid
FROM pgc._procedures p JOIN pgc._all_types t ON t.typname = p.result LEFT JOIN argument a ON a.oid = p.oid
UNION ALL
SELECT oid, name, 'f', 's', true, false, 2276::UINTEGER, 'any', [2281::UINTEGER], 'internal', 0::UINTEGER
FROM (SELECT 750::UINTEGER AS oid, 'array_in' AS name
      UNION SELECT receive_oid, receive FROM pgc._all_types WHERE receive_oid <> 0
      UNION ALL
      SELECT (15000 + row_number() OVER (ORDER BY name))::UINTEGER, name
      FROM (SELECT DISTINCT unnest([input, regexp_replace(input, 'in$', 'out'), regexp_replace(receive, 'recv$', 'send')]) AS name
            FROM pgc._all_types)
      WHERE name NOT IN ('array_in', '-'));
CREATE OR REPLACE TABLE pgf._function AS
SELECT oid AS __oid, name AS __name, result AS __result, if(variadic_oid = 0, '', 'VARIADIC ') || arguments AS __arguments,
       kind AS __kind
FROM pgc._functions;

-- Functions that the copies and views use as well.
CREATE OR REPLACE MACRO pgf._identifiers(s) AS
    list_transform(regexp_extract_all(s, '"(?:[^"]|"")*"|[^".\s]+'),
                   lambda p: if(p LIKE '"%', replace(p[2:-2], '""', '"'), lower(p)));
-- The name that a text begins with: parts with points between them.
CREATE OR REPLACE MACRO pgf._leading_name(s) AS regexp_extract(s, replace('^\s*(?:part)(?:\s*\.\s*(?:part))*\s*', 'part',
    '"(?:[^"]|"")+"|(?:[a-zA-Z_]|[^\x00-\x7F])(?:[\w$]|[^\x00-\x7F])*'));
CREATE OR REPLACE MACRO pgf._name_of(s, name, strict) AS CASE WHEN s IS NOT NULL AND strict IS NOT NULL THEN
    if(name = '' OR (strict AND name <> s) OR starts_with(s[length(name) + 1:], '.'),
       error('string is not a valid identifier: "' || s || '"'), pgf._identifiers(name)) END;
CREATE OR REPLACE MACRO pgf.parse_ident(s, strict := true) AS pgf._name_of(s, pgf._leading_name(s), strict);

-- The session's database; the server sets the variable when a session uses another one.
CREATE OR REPLACE MACRO pgf.session_database() AS coalesce(getvariable('database'), 'dev');
CREATE OR REPLACE MACRO pgf.in_session(d) AS d IS NULL OR d = pgf.session_database();

-- Columns of the system's relations; system_columns.sql fills the table once all relations are defined.
CREATE OR REPLACE TABLE pgc._system_columns (
    relation_id UINTEGER, attnum SMALLINT, name VARCHAR, type_oid UINTEGER, length SMALLINT, dimensions SMALLINT
);

-- Settings that are the same for every session; pg_compat overrides them by the session's.
CREATE OR REPLACE TABLE pgc._settings AS
FROM (VALUES
    ('application_name', '', 'Name of the client.'),
    ('bytea_output', 'hex', 'Output format of bytea.'),
    ('client_encoding', 'UTF8', 'Encoding of the client.'),
    ('client_min_messages', 'notice', 'Least severe message sent to the client.'),
    ('DateStyle', 'ISO, DMY', 'Format of dates.'),
    ('default_table_access_method', 'heap', 'Access method of a new table.'),
    ('default_transaction_isolation', 'read committed', 'Isolation of a new transaction.'),
    ('default_transaction_read_only', 'off', 'Whether a new transaction is read only.'),
    ('extra_float_digits', '1', 'Digits of floating-point values.'),
    ('integer_datetimes', 'on', 'Whether timestamps are integers.'),
    ('IntervalStyle', 'postgres', 'Format of intervals.'),
    ('jit', 'off', 'Whether queries are compiled.'),
    ('lc_collate', 'C.UTF-8', 'Order of text.'),
    ('lc_ctype', 'C.UTF-8', 'Classes of characters.'),
    ('max_identifier_length', '63', 'Longest identifier PostgreSQL keeps.'),
    ('max_index_keys', '32', 'Most columns of an index.'),
    ('max_connections', '100', 'Most concurrent connections.'),
    ('search_path', '"$user", public', 'Schemas searched for an unqualified name.'),
    ('server_encoding', 'UTF8', 'Encoding of the server.'),
    ('server_version', '13.14.0', 'PostgreSQL version that the server speaks.'),
    ('server_version_num', '130014', 'The same as a number.'),
    ('standard_conforming_strings', 'on', 'Whether backslashes are ordinary.'),
    ('statement_timeout', '0', 'Longest time a statement may take.'),
    ('TimeZone', 'UTC', 'Zone of timestamps.'),
    ('transaction_isolation', 'read committed', 'Isolation of this transaction.'),
    ('transaction_read_only', 'off', 'Whether this transaction is read only.')
) AS setting(name, setting, description);

CREATE OR REPLACE TABLE pgf._setting AS SELECT lower(name) AS __name, setting AS __setting FROM pgc._settings;

-- Names as SQL writes them, separated by commas.
CREATE OR REPLACE MACRO pgf._quoted(names) AS array_to_string(list_transform(names, lambda __n: pgf._ident(__n)), ', ');

-- The letter of what a foreign key does when the row that it references changes.
CREATE OR REPLACE MACRO pgf._action(action) AS
    CASE action WHEN 'CASCADE' THEN 'c' WHEN 'RESTRICT' THEN 'r' WHEN 'SET NULL' THEN 'n' WHEN 'SET DEFAULT' THEN 'd' ELSE 'a' END;
