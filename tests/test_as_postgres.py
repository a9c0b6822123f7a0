"""Values of rarely used calls, operators and literals: PostgreSQL's, in queries and in views."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres import beside
from servers import Server

from sparkwave.catalog.errors import Error
from sparkwave.catalog.regexp_functions import regexp
from sparkwave.catalog.regular_expressions import matches

Connection = psycopg.Connection[Any]

# Over a table of a few rows; as text, so that both are read alike.
EXPRESSIONS = (
    "regexp_match(s, p)", "regexp_match(s, 'o(b)(a)')", "regexp_match(s, p, 'i')", "iv + '1s'", "'1s' + iv",
    "iv - '1 day 2 hours'", "ts + '1 day'", "ts - '2019-12-31 12:00'", "d - '2019-12-31'", "a + '1'", "f - '0.5'",
    "ARRAY[[a]] || ARRAY[2]", "ARRAY[2] || ARRAY[[a]]", "ARRAY[[a]] || ARRAY[[2]]", "ARRAY[a] || 2", "2 || ARRAY[a]",
    *(f"iv::interval {fields}" for fields in ("year", "year to month", "day", "day to hour", "minute", "second(1)")),
    "(iv * 0.123456)::interval(2)", "-(iv * 0.123456)::interval hour to second(0)", "(ts + iv * f)::timestamp(0)",
    "(ts - time '00:00:00.25' * f)::timestamp(1)", "(ts - time '00:00:00.0051' * f)::timestamptz(2)",
    "(time '23:59:59.4' + iv * (f / 864000))::time(0)", "iv + interval '1-2' year to month",
    "ts - interval '1 2:3' day to minute", "('1 day ' || a)::interval day", "interval '2:03' minute to second * a",
    "interval '1 02:03:04.567' day to second(1) + iv", "interval(1) '0.25' * f", "'5'::interval minute + iv",
    # Numbers by patterns.
    *(
        f"to_char({number}, '{pattern}')"
        for number, pattern in (
            ("a * 100", "RN"), ("a", "FMrn"), ("a * 3", "FM99th"), ("-a", "9.9PR"), ("a", "PL99"), ("-f", "SG99.9"),
            ("a * 1234", "L9G999D99"), ("f * 1000", "9.99EEEE"), ("a::numeric", "9.9EEEE"), ("a", '"no. "999'),
            ("-a", "FM99MI"), ("a * 100.5", "0999.99S"), ("f", "FM9.99SG"), ("a", "9 9 x9"), ("a * 1000", "SG99"),
        )
    ),
    "to_char(a, p)", "to_char(ts, p)", "to_char(iv, s)", "to_char(f, CASE WHEN id > 1 THEN '9.9' ELSE 'FMRN' END)",
    "to_char(ts, CASE WHEN id > 1 THEN 'TZ Day' ELSE 'Q \"q\"' END)", "to_number('<' || a || '>', '99PR')",
    "to_number(a || '-', '99S')", "to_number(a * 1000 || 'th', '9G999th')", "to_number('$1,23' || a, 'L9,999.99')",
    "to_number(a || '5', '99V9') * 1.0 > a", "to_number('x' || a, left(p, 0) || ' 99')",
    # Times by patterns.
    *(
        f"to_timestamp({text}, '{pattern}')"
        for text, pattern in (
            ("ts::text", "YYYY-MM-DD HH24:MI:SS"), ("'5th Mar 1' || a", "DDth Mon YY"),
            ("a || '/II/2024 BC'", "DD/RM/YYYY BC"),
            ("'1,99' || a", "Y,YYY"), ("'2024-W0' || a || '-3'", 'IYYY-"W"IW-ID'), ("'81' || a || '99'", "SSSS"),
            ("'2024 06' || a", "YYYY DDD"),
            ("'11:3' || a || ' pm 2024/1/2'", "HH12:MI pm YYYY-MM-DD"), ("'2' || a", "CC"),
            ("'2024-01-02 3:4:5.' || a", "YYYY-MM-DD HH24:MI:SS.MS"), ("'12:13:14.5678' || a", "HH24:MI:SS.FF3"),
            ("'2024-01-02 03 -0' || a || ':30'", "YYYY-MM-DD HH24 TZH:TZM"),
            ("'245486' || a", "J"), ("left(s, 0)", "YYYY"),
            ("'Tuesday, 1' || a || '   May 69!'", "Day, DD Month YY"), ("'2024010' || a || '1213'", "FXYYYYMMDDHH24MI"),
            ("'2024-1-2 x ' || a", "YYYY-MM-DD"),
        )
    ),
    "to_date('5 may 202' || left(p, 0) || a, 'DD Month YYYY')", "to_date(a || '-2024-1', left(p, 0) || 'DD-YYYY-MM')",
    # Escapes and matches by number of regular expressions, format, digests, normal forms.
    r"s ~ '(o)\1'", r"s !~ '(?=foo)'", r"s ~* '(O)\1(?!x)'", r"regexp_match(s, '(.)(x)?\1')", r"s ~ '\mo*b'",
    r"regexp_replace(s || s, '(o)\1', '<\1\&>', 'g')", r"regexp_split_to_array(s, '(?<=o)')",
    r"regexp_count(s, 'o(?!o)')",
    r"regexp_instr(s, '(?<=f)o')", r"regexp_substr(s, 'o(?=b)')", r"substring(s FROM '(.)\1')",
    "regexp_replace(s, 'x*', 'y', 1, 2)", "regexp_instr(s, '(o)b', 1, 1, 0, '', 1)",
    "regexp_replace(s, 'O', '-', left('ig', id))",
    "s || iv", "iv || s", "s || f", "(f * 2)::real || s", "s || (d - 800000)",
    "json_build_array(1.50, f)", "row_to_json(row(1.50, f, s))", "to_json(ARRAY[1.50, 2.25])", "to_json(2.50)",
    r"s ~ '\mfoo'", r"s ~ '\m(foo|a)(b+|\()'", r"'x ' || s ~ 'x\M'", r"s ~ '\yfoo'", r"s ~* 'r\Z'", r"s ~ '\Afoo'",
    r"'x' || s ~ '\Yfoo'", r"s || ' foo' ~ ' [[:<:]]foo[[:>:]]'", r"s ~ 'f\u006f'", "s ~ '***=a('",
    r"regexp_replace(s, '((o)(b))', '[\3\2\1]')", "regexp_match(s, left(p, 0) || '((o)(b))')",
    r"regexp_replace('a b-' || s, '\mb', '<\&>', 'g')",
    r"regexp_replace(s || s, '(o)(b?)', '[\2\1\&\\]', 1, 2)", "regexp_replace(s || s, 'O', 'x', 2, 3, 'i')",
    "regexp_replace(s || s, 'z', 'x', 1, 2)", "regexp_replace('ao' || s, '^a|o', 'x', 1, 2)",
    "regexp_instr(s || s, 'o')", "regexp_instr(s || s, 'o', 1, 3)", "regexp_instr(s || s, 'O(B)', 2, 2, 1, 'i')",
    "regexp_instr(s, p)", "regexp_instr(s, 'o*')", "regexp_instr(s, 'x')", "regexp_instr(s, 'o', 99)",
    "format(s || ' %s|%-5s|%I %L %%', a, f, 'b' || s, b)", "format('%*s|%-*s', a, s, id, b)", "format('%2$*1$s', a, s)",
    "format(b || '%s', ts)", "format('%1$s ' || s || '%1$L', iv)",
    *(f"sha{size}(s::bytea)" for size in (224, 384, 512)), r"unistr('\0061' || s || '\d83d\de00')",
    *(f"encode(convert_to(normalize(s || 'ä' || 'ﬁ', {form}), 'UTF8'), 'hex')" for form in ("NFD", "NFKC", "NFKD")),
    "s IS NORMALIZED", r"(s || U&'a\0308') IS NFC NORMALIZED", "s || 'ä' IS NOT NFKD NORMALIZED",
    "gcd(a * 2.5, 7.5)", "lcm(a * 2.5, 7.5)", "array_position(ARRAY[a, 7, 7], 7, 3)",
    # Times of day beside dates, times and intervals.
    *(f"{moment} - time '23:59:58.5' * 0 - (ts + iv * f)::time" for moment in ("d", "ts", "ts::timestamptz", "iv")),
    "(ts + iv * f)::time + ts", "(ts + iv * f)::time + ts::timestamptz", "ts + (ts + iv * f)::time",
    "d - time '10:00'", "iv - time '10:00'", "time '10:00' + ts", "iv > time '10:00'", "time '10:00' IN (iv, '10:00')",
    "iv + NULL", "'10:00' - (ts + iv * f)::time", "'1 day' - iv", "date_trunc('hour', (ts + iv * f)::time)",
    "date_trunc('minute', time '10:11:12' + iv)", "pg_typeof(ts - time '10:00')",
    # Bytes, encodings, flags of regular expressions, and places before the point.
    "ts AT TIME ZONE interval '02:30'", "ts::timestamptz AT TIME ZONE (iv - iv)", "d AT TIME ZONE 'Asia/Tokyo'",
    "ts::timestamptz AT TIME ZONE '+05:30'", "ts AT TIME ZONE 'UTC+3'", "'2020-01-01 12:00' AT TIME ZONE 'UTC'",
    "format('%s-%s', VARIADIC ARRAY[s, b])", "concat(VARIADIC ARRAY[s, NULL])", "concat_ws('-', VARIADIC ARRAY[a, id])",
    "concat(VARIADIC string_to_array(s, 'o'))", "concat_ws(b, VARIADIC string_to_array(s, 'o'))",
    "jsonb_build_object(VARIADIC ARRAY['a', s])", "num_nulls(VARIADIC ARRAY[a, NULL])",
    "(ARRAY[a] || 3.5)[2]", "(3.125 || ARRAY[a])[1]", "(array_append(ARRAY[a], 2.5))[2]", "ARRAY[a] || 5000000000",
    "(array_replace(ARRAY[a], a, 2.25))[1]", "(array_cat(ARRAY[a], ARRAY[1.75]))[2]", "array_append(ARRAY[a], f)",
    "array_fill(a, ARRAY[2, 3])", "array_fill(s, ARRAY[id], ARRAY[1])", "array_fill(a * 1.5, ARRAY[id, 2])",
    "encode(repeat(s, 19)::bytea, 'base64')", "encode(repeat('x', 57 * id)::bytea, 'base64')",
    "decode('6f' || E' \\n' || a || 'A', 'hex')", "decode(encode(s::bytea, 'base64') || E'\\n', 'base64')",
    "a::int2 / id::int2", "pg_typeof(a::int2 / id::int2)", "pg_typeof(a::int2 % id::int2)", "pg_typeof(a::int2 & 3)",
    "position('\\x6f'::bytea IN s::bytea)", "position(''::bytea IN s::bytea)",
    "overlay(s::bytea PLACING 'ZZ'::bytea FROM 2)", "overlay(s::bytea PLACING '\\x00'::bytea FROM 2 FOR id)",
    "btrim(s::bytea, '\\x6672'::bytea)", "ltrim(s::bytea, 'fo'::bytea)", "rtrim(s::bytea, 'Rr'::bytea)",
    "trim('f'::bytea FROM s::bytea)", "convert_to(s || 'é', 'LATIN1')", "convert_to('€' || s, 'win1252')",
    "convert_to('ж' || s, 'KOI8R')", "convert_to(s || 'é', 'SQL_ASCII')", "convert_to('ğ', 'iso-8859-9')",
    "convert_from(s::bytea || '\\xe9', 'Latin 1')", "convert_from('\\x80a4'::bytea, 'WIN1252')",
    "convert_from('\\xe6'::bytea, 'WIN1251')", "convert('\\xa4'::bytea, 'LATIN9', 'utf8')",
    "regexp_replace(s, 'O', '-', 'gi')", "regexp_replace(s || E'\nb', '^b', '-', 'n')",
    "regexp_replace(E'o\nb' || s, 'o.b', '-', 'p')", "regexp_replace(E'o\nb' || s, 'o.b', '-', 's')",
    "regexp_replace(s || E'\nb', 'r.^b', '-', 'w')", "regexp_replace(s, '(', '-', 'q')",
    "regexp_replace(s, ' o + # two\n b', '-', 'xi')", "regexp_replace(s, 'o', '[\\&]', 3)",
    "regexp_replace(s, 'O', '-', 2, 0, 'i')", "regexp_match(s, 'O(B)', 'ni')", "regexp_split_to_array(s, 'O', 'i')",
    "regexp_substr(s, 'O(.)', 1, 1, 'i', 1)", "regexp_substr(s, 'o', 1, id)", "regexp_substr(s, 'o.', 3)",
    "regexp_count(s || E'\no', '^O', 1, 'in')", "to_char(a * 1.25, '99V99')", "to_char(-a, 'S99V9')",
    "to_char(f, 'FM9V999')", "to_char(a, '9,999V99MI')", "to_char(f::numeric, '0V')",
    "b::timestamp", "b::date", "b::timestamptz", r"E'\\x6162'::bytea", r"E'\\x'::bytea", r"E'ab\\000c'::bytea",
    *(f"pg_typeof({value})" for value in ("a", "f", "s", "ts", "d", "iv", "1.5", "a * 1.5", "'x'", "ARRAY[a]")),
    "array_to_string(ARRAY[a, NULL], NULL)", "array_to_string(ARRAY[a, NULL], ',')",
    r"E'a\tb'",
    "encode((s || 'ä€')::bytea, 'base64')", r"('a\\b' || s)::bytea", r"('\x6162' || left(s, 0))::bytea",
    """('2020-01-0' || id)::"pg_catalog"."date" """, """s::"pg_catalog"."varchar" """,
    """iv::text::"pg_catalog"."interval" """, """ts::text::"pg_catalog"."timestamp" """,
    "jsonb_build_object(a, s, f, d)", "jsonb_build_object(a > 5, NULL, f, 'x')", "iv + E'1s'",
    "('{' || a || ',NULL, 7 }')::int[]", """('{"a b",' || s || ',NULL,"NULL","x\\"y"}')::text[]""",
    "('{1.5,' || a || '}')::numeric[]", "('{t,' || (a > 5)::text || ',off}')::boolean[]", "('{}' || left(s, 0))::int[]",
    "('{\"2020-01-01\",' || d || '}')::date[]",
    "(' ' || a || ' ')::int", "('+' || a)::bigint", "('-' || abs(a))::smallint + 1", "length(s)::text::int",
    *(f"('{text}' || left(s, 0))::boolean" for text in ("on", "off", "tr", " FALS ", "y", "0")),
    "tand(a * 18)", "cotd(a * 36)", "power(f, a)", "a ^ 2", "exp(f)", "asin(f / 4)", "acos(f / 4)", "atanh(f / 4)",
    "array_cat(ARRAY[[a]], ARRAY[2])", "array_cat(ARRAY[2], ARRAY[[a]])", "array_cat(NULL::int[], ARRAY[[a]])",
    "array_cat(ARRAY[[a]], NULL::int[])", "array_cat('{1}', ARRAY[a])", "ARRAY[[a]] || NULL::int[]",
    "array_length(ARRAY[[a, 1]], 2)", "array_upper(ARRAY[[a, 1]], 2)", "array_lower(ARRAY[[a, 1]], 3)",
    "array_dims(ARRAY[[[a, 1]], [[2, 3]]])", "cardinality(ARRAY[[[a, 1]], [[2, 3]]])", "cardinality(ARRAY[a])",
    "array_lower(ARRAY[a], a)",
    "array_position(ARRAY[1, a, 1], 1, 2)", "array_position(ARRAY[1, a], a, a)", "array_position(NULL::int[], a, NULL)",
    "ts::time - time '10:00'", "ts::time * a", "2 * (ts + iv)::time", "time '10:00' / a", "(ts + iv)::time * f",
    "f::real + a", "a / f::real", "f::real * 1.1", "1.1::real = 1.1 * (a / a)", "f::real + f::real",
    "scale(f::numeric(10,4))", "scale(a * 1.50)", "scale(a)", "min_scale(f::numeric)",
    "pg_typeof(ROW(a, s))", "pg_typeof(ts::time - time '10:00')", "pg_typeof(f::real * a)",
    "regexp_match(s, NULL)", "regexp_match(s, 'o', NULL)", "a = SOME (NULL)", "a = SOME (ARRAY[5, NULL])",
    "date_trunc('quarter', iv)", "date_trunc('qtr', ts)", "date_trunc('cent', ts)", "date_trunc('hrs', iv)",
    "extract(yrs FROM ts)", "convert_from(s::bytea, 'utf8')", "round('2.5')",
    "'a.b' SIMILAR TO 'a.b'", *(f"s SIMILAR TO {pattern}" for pattern in (
        "b", "'%o_a%'", "'%#\"o_b#\"%' ESCAPE '#'", "'%(o|x)+b[%a]_'", "'foo#_%' ESCAPE '#'", "'a.b'", "'%\\_%'",
        "'%\\_%' ESCAPE ''", "'#é' ESCAPE '#'", "'fo{2}%' ESCAPE NULL", "left(s, 1) || '%' ESCAPE left('#', id)",
    "'[a-g]%'")),
    "s NOT SIMILAR TO 'f%' ESCAPE 'x'", "substring(s FROM '%#\"o_b#\"%' FOR '#')",
    "substring(s SIMILAR '%!\"[bB]%!\"_' ESCAPE '!')", "substring(s FROM 'f%r' FOR '')", "substring(s FROM b FOR 'x')",
    "substring(s FROM 'f+#\"o*#\"%' FOR '#')", "substring(s FROM '%#\"o#\"%' FOR '#')", "substring(s, NULL, '#')",
    "array_to_string(ARRAY[a, NULL, 7], s)", "array_to_string(ARRAY[a, NULL], p, s)", "array_to_string(ARRAY[f], b)",
    "trim(BOTH FROM s, 'fr')", "trim(FROM ' ' || s)", "trim(TRAILING FROM s, 'R')", "trim(s, 'fr')",
    "to_char(ts, 'YYYY-MM-DD HH24:MI:SSZ')",
    "json_object(ARRAY[s, 'b', s, NULL])", "json_object(ARRAY['k', s], ARRAY[NULL, p])", "json_object('{}'::text[])",
    "json_object('{a,b}')", "jsonb_object('{{a,b},{c,d}}'::text[][])", "json_object(ARRAY[['a', s], ['a', 'd']])",
    "json_object(string_to_array(b, '-'), string_to_array(b, '-'))",
    "jsonb_path_exists(jsonb_build_object('a', a), 'strict $.b', '{}', true)",
    "jsonb_build_object('a', a) @? '$.a ? (@ > 1)'", "jsonb_build_object('a', a) @? 'strict $.b'",
    "NULL::jsonb @? '$.a'", "NOT jsonb_build_object('a', a) @? '$.a ? (@ > 1)' OR a = 1",
    "interval '1 day' + '2020-01-01'::timestamp", "a * 1e-3", "1.14514e-5", "pg_typeof(1e2)", "-1.5E1",
    "1e0",
    "iv - interval '00:00:01.2345678'", "interval '0.0000015' + iv", "time '00:00:00.0000007' + iv",
)  # fmt: skip
AGGREGATES = (
    "corr(f, g)", "regr_slope(f, g)", "regr_intercept(f, g)", "regr_r2(f, g)", "covar_pop(f, g)", "covar_samp(f, g)",
    "corr(f, g) FILTER (WHERE a > 5)", "regr_slope(f, g) FILTER (WHERE a > 99)",
    "sum(a)", "sum(DISTINCT a)", "sum(a) FILTER (WHERE id > 1)", "sum(a::bigint)", "sum(a) + 1", "sum(a) / count(*)",
    "sum(a::bigint) / count(*)", "sum(a * 1.5) / count(*)", "sum(a) / nullif(sum(a * 0.5), 0)", "sum(f) / count(*)",
    "sum(CASE WHEN id > 1 THEN 1 ELSE 0 END) / count(*)", "sum(length(s)) / count(*)", "sum(a) % 4",
    "round(100.0 * count(*) FILTER (WHERE id > 2) / count(*), 1)", "round(sum(a) * 1.0 / count(*), 2)",
    "max(a) - min(a)", "sum(f) - min(a)", "sum(a * 1.5) - sum(a)",
    "percentile_cont(0.3) WITHIN GROUP (ORDER BY (id * 1.25)::numeric(6,2))",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY id)",
)  # fmt: skip
WINDOWS = (
    "corr(f, g) OVER (PARTITION BY a)",
    "regr_slope(f, g) OVER (ORDER BY id)",
    "round(sum(a) OVER ())",
    "sum(a) OVER (ORDER BY id) / count(*) OVER (ORDER BY id)",
)
MOST = (
    "sum(a) / (SELECT count(*) FROM v)",
    "round(sum(a) * 100.0 / (SELECT sum(a) FROM v), 1)",
    "max(ts) - (SELECT min(ts) FROM v)",
    "(SELECT sum(a) FROM v) - sum(a)",
    "max(d) - min(d)",
    "max(ts) - min(ts)",
    "max(ts) - max(d)",
    "max(d) - 1",
    "max(d) - max(a)",
)
ERRORS = {
    "convert_to(s || '€', 'LATIN1')": "22P05",
    "convert_to(s, 'nope')": "22023",
    "convert_from('\\x81', 'WIN1252')": "22P05",
    "convert_from('\\x4100', 'LATIN1')": "22021",
    "regexp_replace(s, 'b', 'x', 'z')": "22023",
    "regexp_match(s, 'b', 'g')": "22023",
    "regexp_split_to_array(s, 'b', 'g')": "22023",
    **dict.fromkeys(
        ("to_char(a, '999V9.9')", "to_char(a, '9PR9')", "to_char(a, '9EEEE9')", "to_char(a, 'S9S')"), "42601"
    ),
    "to_number(s, '999' || left(s, 0))": "22P02",
    "to_number('1', 'RN' || left(s, 0))": "0A000",
    "format('%I', NULL)": "22004",
    **dict.fromkeys(
        (
            "to_date(s, 'YYYY')",
            "to_timestamp('15 pm', 'HH12 pm')",
            "to_date('1 x', 'DD Mon')",
            "to_date('2024 1', 'YYYY IW')",
            "to_date('123', 'YYYYMMDD')",
            "to_date('60', 'DDD')",
            "to_date('3 4', 'DD DD')",
        ),
        "22007",
    ),
    **dict.fromkeys(
        (
            "to_date('2024-02-30', 'YYYY-MM-DD')",
            "to_timestamp('2024-01-01 25', 'YYYY-MM-DD HH24')",
            "to_date('13', left(s, 0) || 'MM')",
        ),
        "22008",
    ),
    "to_timestamp('UTC', 'TZ')": "0A000",
    **dict.fromkeys(("format('%s %s' || left(s, 0), a)", "format('%*s', a)", "format('%0$s', a)"), "22023"),
    **dict.fromkeys((r"unistr('\zz' || s)", r"unistr('\d83d' || s)"), "42601"),
    **dict.fromkeys(
        (
            "regexp_instr(s, 'o', 0)",
            "regexp_instr(s, 'o', 1, 0)",
            "regexp_instr(s, 'o', 1, 1, a)",
            "regexp_replace(s, 'o', 'x', 1, -1)",
            "regexp_instr(s, 'o', 1, 1, 0, 'g')",
        ),
        "22023",
    ),
    "ARRAY[[1]] || 2": "22000",
    "round(sum(a)) OVER ()": "42809",
    "abs(a) OVER ()": "42809",
    "jsonb_build_object(NULL::text, s)": "22023",
    "jsonb_build_object(s)": "22023",
    "factorial(-a)": "22003",
    "width_bucket(a, 1, 1, 3)": "2201G",
    "width_bucket(a, 0, 1, 0)": "2201G",
    "width_bucket('NaN'::float8, 0, 1, 3)": "2201G",
    "width_bucket(a, ARRAY[1, NULL])": "22004",
    **dict.fromkeys(("json_object(ARRAY[s, NULL], ARRAY[s, s])", "jsonb_object(ARRAY[NULL, s])"), "22004"),
    **dict.fromkeys(
        (
            "json_object(ARRAY[s])",
            "jsonb_object(ARRAY[s])",
            "json_object(ARRAY[s], ARRAY[s, s])",
            "json_object(ARRAY[[s, s]], ARRAY[s])",
            "jsonb_object(ARRAY[[s, s, s]])",
            "json_object(ARRAY[[[s, s]]])",
        ),
        "2202E",
    ),
    "jsonb_build_object('a', a) @? '$.a ? ('": "42601",
    "array_fill(a, NULL)": "22004",
    "array_position(ARRAY[a], a, NULL)": "22004",
    "get_bit(s::bytea, 999)": "2202E",
    "'{a,,b}'::text[]": "22P02",
    "'{1,2'::int[]": "22P02",
    "make_interval(days => a, 1)": "42601",
    "make_interval(days => a, days => 1)": "42601",
    "(ts, ts) OVERLAPS (ts, ts, ts)": "42601",
    "mode() WITHIN GROUP (ORDER BY 'a')": "42804",
    **dict.fromkeys(
        ("sum(s)", "sum(ts)", "avg(s)", "lower(ts)", "abs(s)", "a + s", "s + 1", "a - ts", "d + s"), "42883"
    ),
    **dict.fromkeys(("unnest(a)", "stddev(s)", "left(a, 2)", "array_agg(a) + 1"), "42883"),
    **dict.fromkeys(("coalesce(a, ts)", "CASE WHEN true THEN a ELSE ts END", "a[1]", "(d)[1]"), "42804"),
    **dict.fromkeys(("'1' + '1'", "'1' * '2'", "- '1'"), "42725"),
    **dict.fromkeys(("to_char(iv, 'Month')", "to_char(iv, 'TZH')", "to_char(iv, 'D')"), "22007"),
    **dict.fromkeys(("s[1]", "s[1:2]", "a[1]"), "42804"),
    "row_number()": "42809",
    "w.a": "42P01",
    **dict.fromkeys(
        (
            "power(f, 9999)",
            "power(f, -9999)",
            "a ^ 9999",
            "exp(a * 1000)",
            "exp(a * -1000)",
            "exp(a * 1000.0)",
            "asin(a)",
            "acos(-a)",
            "atanh(a)",
        ),
        "22003",
    ),
    **dict.fromkeys(
        ("date_trunc('dow', iv)", "date_trunc(s, ts)", "extract(foo FROM ts)", "date_part(s, iv)"), "22023"
    ),
    **dict.fromkeys(("decode(s, 'hex')", "decode('abc', 'hex')", "decode(s || '!', 'base64')", "chr(-a)"), "22023"),
    **dict.fromkeys(("(-32768)::int2 / (id - id - 1)::int2", "(-2147483648)::int / (id - id - 1)"), "22003"),
    "s LIKE p ESCAPE 'ab'": "22025",
    **dict.fromkeys(("date_trunc('week', iv)", "date_trunc('timezone', ts)"), "0A000"),
    **dict.fromkeys(("s SIMILAR TO p ESCAPE 'ab'", "substring(s FROM 'a' FOR s)"), "22025"),
    "s SIMILAR TO 'a#\"b#\"c#\"d' ESCAPE '#'": "2200C",
    **dict.fromkeys(
        (
            r"convert_from('\xff', 'UTF8')",
            r"convert_from('\x61e28230', 'UTF8')",
            r"convert_from('\x6100', 'UTF8')",
            r"convert_from('\xeda080', 'UTF8')",
            r"convert_from('\x61c3', 'UTF8')",
        ),
        "22021",
    ),
}


# Calls that no function takes: they have another number of arguments, or arguments of other types.
UNDEFINED = (
    "now(1)", "date()", "sum()", "sum(a, f)", "max(a, id)", "count()", "array_cat(ARRAY[a], a)", "round(a, 2, 3)",
    "round(d)", "substr()", "substring()", "char_length()", "string_agg('a')", "string_agg()", "mod(a)", "random(1)",
    "jsonb_array_elements('[1]', '2')", "lag() OVER ()", "row_number(1) OVER ()",
    "date_trunc('day')", "date_part('day')", "to_char(a)", "unnest()", "generate_series(1)", "ceil(a > 1)", "trunc()",
    "abs(length('x') + length(a))", "foo(a, 'x', 2.5, now(), NULL)", "regexp_match('a')", "to_timestamp()",
    "to_date('x')",
    "to_number('1')", "current_database(1)", "version(a)", "make_date(a)", "atan2(1, 2, 3)",
    "upper(a)", "array_remove(a, 1)", "jsonb_object_keys()", "greatest(a)::int, lower(a, f)",
)  # fmt: skip


# Whole statements with errors; their SQLSTATE, message and position are PostgreSQL's.
MISTAKES = (
    'SELECT "a""b" FROM v', 'SELECT "A" FROM v', 'SELECT v."ID", a FROM v',
    'SELECT id FROM v WHERE "A" = 1 ORDER BY "S"', 'SELECT count(*) FROM v GROUP BY "A"',
    'WITH q AS (SELECT a FROM v) SELECT "A" FROM q', 'DELETE FROM v WHERE "A" = 3',
    'SELECT (SELECT "A" FROM v LIMIT 1)', 'UPDATE v SET "A" = 1',
    'SELECT "Order No" FROM v', 'SELECT v."X" FROM v', "SELECT 1 + v.x FROM v", 'SELECT a, "a b".c FROM v',
    "SELECT * FROM (SELECT a AS x FROM v) q WHERE a = 1", "WITH q AS (SELECT a FROM v) SELECT a, id FROM q",
    "SELECT a FROM v WHERE EXISTS (SELECT 1 FROM v AS w WHERE w.zz = v.a)",
    "SELECT x.a FROM v x JOIN v y ON a = y.id",
    "SELECT s, s || d, s - a FROM v", "SELECT a::int + (b - a) FROM v", "SELECT a FROM v WHERE d > 5",
    "SELECT -s FROM v",
    "SELECT a FROM v WHERE s\n  = a", "SELECT a IN (s) FROM v", "SELECT a NOT IN (SELECT s FROM v) FROM v",
    "SELECT a BETWEEN s AND 3 FROM v", "SELECT a NOT LIKE 'x' FROM v", "SELECT s ~ a FROM v", "SELECT a || a FROM v",
    "SELECT a % s FROM v", "SELECT s * 2 FROM v", "SELECT ts - s FROM v", "SELECT a & s FROM v", "SELECT ~s FROM v",
    "SELECT a @> s FROM v", "SELECT @s FROM v", "SELECT (a, s) = (1, 2) FROM v", "SELECT a = ANY(s) FROM v",
    "SELECT (a, s) = (1, 'x', 3) FROM v", "SELECT ts + 1 FROM v",
    "SELECT CASE WHEN true THEN a ELSE s END FROM v", "SELECT coalesce(a, s) FROM v", "SELECT greatest(a, s) FROM v",
    "SELECT ARRAY[a, s] FROM v", "SELECT sum(s) FROM v", "SELECT 1, generate_series(s, 1) FROM v",
    "SELECT a, count(*) FROM v", "SELECT v.a + 1, sum(f) FROM v GROUP BY s", "SELECT x.a FROM v AS x GROUP BY x.s",
    "SELECT a FROM v GROUP BY 3", "SELECT a FROM v ORDER BY 1, 2", "SELECT sum(sum(a)) FROM v",
    "SELECT a FROM v WHERE sum(a) > 1", "SELECT a FROM v GROUP BY sum(a)",
    "SELECT 1 FROM v JOIN v AS w ON sum(v.a) = 1", "SELECT a FROM v WHERE row_number() OVER () = 1",
    "SELECT a, row_number() FROM v", "SELECT sum(a) OVER w FROM v", "SELECT a FROM v LIMIT a",
    "SELECT nullif(a, s) FROM v", "SELECT s IS NOT DISTINCT FROM a FROM v", "SELECT 1, s IS DISTINCT FROM a FROM v",
    "SELECT a IS TRUE FROM v", "SELECT 1 FROM v WHERE s IS NOT FALSE", "SELECT a::foo FROM v",
    'SELECT CAST(a AS "My Type") FROM v', "SELECT a FROM v UNION SELECT a, s FROM v",
    "SELECT 1, (SELECT a, s FROM v) FROM v", "VALUES (1, 2), (3)",
    "INSERT INTO v SELECT zz FROM v", "INSERT INTO v (id, zz) SELECT a, s FROM v", "INSERT INTO v (id, a) VALUES (1)",
    "INSERT INTO v (id, a) VALUES (1, 2, 3)", "INSERT INTO v (id) SELECT a, s FROM v",
    "INSERT INTO v (id, id) VALUES (1, 2)",
    "INSERT INTO v (id) VALUES (9) RETURNING zz", "UPDATE v SET a = 1 WHERE s = 1", "UPDATE v SET a = sum(a)",
    "UPDATE v SET a = w.zz FROM v AS w", "DELETE FROM v WHERE a = s", "DELETE FROM v RETURNING zz",
)  # fmt: skip


SERIES = (
    "SELECT i, pg_typeof(i) FROM generate_series(1, 3) AS i", "SELECT * FROM generate_series(-1, -5, -2)",
    "SELECT generate_series, pg_typeof(generate_series) FROM generate_series(1, 2::smallint)",
    "SELECT date '2024-01-01' + x FROM generate_series(1, 2) AS g(x)",
    "SELECT date '2024-01-01' + generate_series(1, 2)",
    "SELECT pg_typeof(i) FROM generate_series(3000000000, 3000000001) AS i",
    "SELECT pg_typeof(array_agg(i)) FROM generate_series(1, 2::int) AS i", "SELECT generate_series(1, 2) * 1.5",
    "SELECT v.id, i FROM v JOIN generate_series(1, 3) AS i ON i = v.id",
    "SELECT id, generate_subscripts(ARRAY[[a, id, 1]], 2, id > 1) FROM v",
    "SELECT * FROM generate_subscripts(ARRAY[5, 6, 7], 1, true)", "SELECT generate_subscripts(ARRAY[5, 6, 7], 2)",
    "SELECT interval '7' h, interval '0' b, interval '1.5' x",
    "SELECT * FROM regexp_matches('abc', NULL)", "SELECT regexp_matches('abc', 'b', NULL)",
)  # fmt: skip


SERIES_OF_COLUMNS = (
    "SELECT v.id, x FROM v, generate_series(1, a) AS x", "SELECT id, generate_series(a, 9) AS x FROM v",
    "SELECT v.id, x FROM v, generate_series(f::numeric, 4) AS x", "SELECT id, generate_series(f::numeric, 3) x FROM v",
    "SELECT v.id, x FROM v LEFT JOIN generate_series(f::numeric(5,2), 3, 0.75) AS x ON true",
    "SELECT v.id, x FROM v, generate_series(4, f::numeric, -1) AS x",
    "SELECT v.id, x FROM v CROSS JOIN LATERAL generate_series(v.id, v.a, 2) AS g(x)",
    "SELECT v.id, x FROM v CROSS JOIN LATERAL generate_series(1.5, v.a) AS g(x)",
    "SELECT v.id, x, n FROM v, generate_series(f::numeric, 3) WITH ORDINALITY AS g(x, n)",
    "SELECT v.id, x FROM v, generate_series(ts, '2020-01-03', '1 day 1 hour') AS x",
    "SELECT id, x FROM v, generate_series('2020-01-01', '2020-01-02', interval '6 hours') AS x",
    "SELECT v.id, sum(x) AS s, avg(x) AS a, max(x * 2) AS m FROM v, generate_series(f::numeric, 4) AS x GROUP BY v.id",
)  # fmt: skip


NAMED_TYPES = (
    """SELECT '"oid"'::regtype, '"int4"'::regtype, 'int4[]'::regtype, 'pg_catalog.int4'::regtype""",
    "SELECT 'int4[]'::regtype::oid, 'text[]'::regtype::oid, 'numeric(10,2)'::regtype::oid",
    "SELECT pg_typeof('100'::oid), pg_typeof(ARRAY[1::oid]), pg_typeof('100'::oid) = 'oid'::regtype",
    "SELECT to_regclass('v'), to_regclass('w'), to_regclass('v')::oid = 'v'::regclass, to_regtype('int4')::text",
    "SELECT 'integer'::regtype = pg_typeof(1), pg_typeof(1) <> 'int8'::regtype, pg_typeof(oid) FROM pg_class LIMIT 1",
)
DEEP_ARRAYS = (
    "SELECT '{{10,20},{30,40}}'::int[]",
    "SELECT ('{{10,20}}'::int[])[1][2]",
    "SELECT CAST('{{{{{{a}}}}}}' AS text[])",
    "SELECT array_length('{{{1}}}'::int[], 3), array_dims('{{1,2}}'::int[]), '{}'::int[], '[1:1][1:2]={{1,2}}'::int[]",
    "SELECT '{{1,2}}'::int[] = ARRAY[[1,2]], pg_typeof('{{1}}'::int[]), '{{1,2}}'::int[] || '{{3,4}}'::int[]",
    "SELECT unnest('{{1,2},{3,4}}'::int[])",
    "SELECT 2 = ANY('{{1,2}}'::int[])",
    "SELECT '{{2024-01-01,NULL}}'::date[]",
)
OF_PARAMETERS = (
    "SELECT generate_series(1, $1)",
    "SELECT * FROM generate_series(1, $1)",
    "SELECT generate_series($1, 10, $2)",
    "SELECT i + 1 FROM generate_series($1, $2::bigint) AS i",
    "SELECT * FROM generate_series($1::timestamp, $2, $3)",
    "SELECT generate_series(1, $1::numeric)",
)


@pytest.fixture(scope="module")
def both(in_process_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(in_process_server) as clients:
        for client in clients:
            client.execute(
                "CREATE TABLE v (id int PRIMARY KEY, a int, f float8, g float8, s varchar, p varchar, ts timestamp,"
                " d date, iv interval, b varchar)"
            )
            client.execute(
                "INSERT INTO v VALUES (1, 5, 1.5, 2.5, 'foobar', 'o(b)(a)', '2020-01-01', '2020-01-01', '1 day',"
                " '0044-03-15 BC'), (2, 7, 1.5, 2.5, 'fooBAR', 'o(?:b)', '2020-01-01', '2020-01-01', '-1 day',"
                " '0044-03-15 10:11:12 BC'), (3, 7, 2.5, 3.5, 'a(b', '[(]|xy', NULL, NULL, NULL, '2020-01-01'),"
                r" (4, 8, 3.5, 3.5, 'a(b', 'a\(b', NULL, NULL, NULL, NULL)"
            )
        yield clients


def test_what_is_collected_with_distinct_is_sorted(both: tuple[Connection, Connection]) -> None:
    """In queries and views, whatever comes and goes."""
    here, there = both
    calls = (
        "string_agg(DISTINCT w, ',')", "array_agg(DISTINCT n)", "array_agg(DISTINCT w ORDER BY w DESC)",
        "string_agg(DISTINCT w || 'x', '-') FILTER (WHERE n > 1)", "jsonb_agg(DISTINCT n::int)",
        "array_to_string(array_agg(DISTINCT upper(w)), ' ')",
    )  # fmt: skip
    listed = ", ".join(f"({call})::text AS x{number}" for number, call in enumerate(calls))
    query = f"SELECT g, {listed} FROM words GROUP BY g"
    for client in both:
        client.execute("CREATE TABLE words (id int PRIMARY KEY, g int, w text, n numeric(6,2))")
        client.execute(
            "INSERT INTO words SELECT i, i % 3, chr(122 - i * 7 % 26), i * 5 % 7 FROM generate_series(1, 60) AS s (i)"
        )
    here.execute(f"CREATE MATERIALIZED VIEW of_words AS {query}".encode())
    for change in (
        "DELETE FROM words WHERE id % 5 = 0",
        "INSERT INTO words VALUES (100, 1, 'a', 9), (101, 2, NULL, NULL)",
    ):
        for client in both:
            client.execute(change.encode())
        here.execute("FLUSH")
        expected = there.execute(f"{query} ORDER BY 1".encode()).fetchall()
        assert here.execute(f"{query} ORDER BY 1".encode()).fetchall() == expected
        assert here.execute("SELECT * FROM of_words ORDER BY 1").fetchall() == expected


def _parts(calls: tuple[str, ...]) -> list[tuple[str, ...]]:
    """DuckDB takes a fifth longer to plan 40 expressions of a query, and twice as long all of them."""
    return [calls[start : start + 20] for start in range(0, len(calls), 20)]


CALLS = [
    *(pytest.param("expressions", calls, id=f"expressions-{n}") for n, calls in enumerate(_parts(EXPRESSIONS), 1)),
    pytest.param("aggregates", AGGREGATES, id="aggregates"),
    pytest.param("windows", WINDOWS, id="windows"),
]


@pytest.mark.parametrize(("kind", "calls"), CALLS)
def test_queries_and_views_have_postgresqls_values(
    both: tuple[Connection, Connection], kind: str, calls: tuple[str, ...]
) -> None:
    connection, postgres = both
    key = "a" if kind == "aggregates" else "id"
    # A text of a call names it several times, so that those of 150 calls take a minute to plan where they are computed.
    inner = ["::text" if call.startswith("E'") and call.endswith("'") else "" for call in calls]  # without a type
    outer = [
        "::text" if kind == "expressions" and not call.startswith(("jsonb", "ARRAY", "2 ||")) else "" for call in calls
    ]
    listed = ", ".join(
        f"({call}){text} AS x{number}" for number, (call, text) in enumerate(zip(calls, inner, strict=True))
    )
    computed = f"SELECT {key}, {listed} FROM v {'GROUP BY a' if key == 'a' else ''}"
    shown = ", ".join(f"x{number}{text} AS x{number}" for number, text in enumerate(outer))
    query = f"SELECT {key}, {shown} FROM ({computed}) AS computed"
    connection.execute(f"CREATE MATERIALIZED VIEW of_{kind} AS {query}".encode())
    told = postgres.execute(f"{query} ORDER BY 1".encode())
    expected, types = told.fetchall(), [column.type_code for column in told.description or ()]
    for of in (f"{query} ORDER BY 1", f"SELECT * FROM of_{kind} ORDER BY 1"):
        cursor = connection.execute(of.encode())
        found = cursor.fetchall()
        if kind != "expressions":
            assert [column.type_code for column in cursor.description or ()] == types
        for number, call in enumerate(calls, 1):
            wanted = [row[number] for row in expected]
            if kind != "expressions":
                wanted = [None if value is None else pytest.approx(float(value)) for value in wanted]
            assert [row[number] for row in found] == wanted, call
    connection.execute(f"DROP MATERIALIZED VIEW of_{kind}".encode())


PATTERNS = (
    "Day, DDth Month YYYY HH24:MI:SS.MS", "FMDay, FMDDth FMMonth YYYY", "DAY DY Dy dy day MONTH month MON mon Mon",
    "YYYY-MM-DD HH12:MI:SS AM", "HH:MI pm A.M. p.m.", "Q D ID W WW IW CC J IDDD DDD", "SSSS SSSSS",
    "Y YY YYY IY I IYYY",
    "FF1 FF3 FF6 US", "TZH:TZM OF", "RM rm FMRM", "BC ad B.C.",
    '"Quarter "Q', "FMMM/FMDD/YY", "DD\"th of\" Month",
    "MMth ddTH", "TZ tz", "Y,YYY FMMS FMUS", '"open YYYY', '\\"YYYY\\', "Dd FmDD Monthth AMth", "TMMonth FXDD DDSP",
    "yyyymmdd",
    "hh24miss", "FMHH12:FMMI", "T YYYY-MM-DD\"T\"HH24:MI:SS", "100% DD",
)  # fmt: skip
MOMENTS = (
    "2024-03-05 14:05:06.123456", "2024-12-30 00:00:00", "2023-01-01 12:00:00.5", "1999-11-22 23:59:59.999999",
    "2021-02-13 01:02:03", "2000-10-31 09:08:07",
)  # fmt: skip


INTERVAL_PATTERNS = (
    "YYYY YYY YY Y", "FMYYYY FMYY CC FMCC", "MM FMMM DD FMDD DDD FMDDD", "Q W WW FMWW", "HH HH12 HH24 MI SS MS US",
    "FMHH FMHH24 FMMI FMSS FMMS FMUS", "FF1 FF3 FF6", "SSSS SSSSS", "AM pm A.M. p.m.", "DDth MMTH HH24th",
    '"Hours: "HH24, x-z', "RM rm FMRM", "IYYY IW J", "Y,YYY FMMS Qth", "MoNtH",
)  # fmt: skip
INTERVALS = (
    "23:22:57.124562", "-23:22:57.124562", "-20459 years -256 days -120 hours 866 seconds", "-256 days -120 hours", "0",
    "1 year 1 month 1 day 01:01:01", "-1 year -1 month -1 day -01:01:01", "300 hours", "2500 years 11 months",
    "-0.000005 s",
)  # fmt: skip


def test_words_that_are_quoted_as_names(both: tuple[Connection, Connection]) -> None:
    words = [word for (word,) in both[1].execute("SELECT word FROM pg_get_keywords() ORDER BY word").fetchall()]
    query = (
        "SELECT quote_ident(w), format('%%I', w), format(left('%%I', length(w) + 1), w) FROM unnest(%s::text[]) AS w"
    )
    found = [client.execute(query, (words,)).fetchall() for client in both]
    assert found[0] == found[1]


PATTERNS = (
    r"(\w+) \1", r"^(.)(.).*\2\1$", "a(?!b)", "(?<=,|^)[^,]*", r"\ma*b", r"\y\w", "[[:<:]]b?a", "(a*)(ab)*(b*)",
    "x*", "a*?b",
    r"(a{2,3})\1?", r"(?i)(A)\1", "(?:a|b)+(?=c)", r"(x)?\1", "(a+?)(b+)", "a||b(?=c)", r"[\w-]+(?=@)",
    "(?x) a  (?= b ) # c", r"\x61(?=b)", "***=a(?=b)", r"(?n)^b.(?=\n|$)", "[^[:alpha:]]+(?=.)", "é(?=.)",
    "(ab?)*?c", r"(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\10", "**", "(", "a**", r"\1(a)", "[b-a](?=x)", "a{3,2}(?=x)",
    "[[:foo:]]",
    "^*(?=a)", r"\q(?=a)", "a{1", r"(a)\2", r"(?=(a))\1", "(?<x>a)",
)  # fmt: skip
SUBJECTS = (
    "", "aab", "abab", "aabb", "abc abc", "the the cat", "noon", "abba", "ab,a,b", "xxy", "aé b", "abcbcd", "joe@x",
    "AAbb",
    "aaaa", "abc\nbcd\nb", "aaabbb", "a(?=b)c", "abcdefghijj",
)  # fmt: skip
# Functions, each with more arguments, and PostgreSQL's call.
CALLS_OF_PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("regexp_like", (), "CASE WHEN s ~ p THEN 'true' ELSE 'false' END"), ("regexp_match", (),
    "to_json(regexp_match(s, p))"),
    ("regexp_all_matches", ("g",), "(SELECT coalesce(json_agg(m), '[]') FROM regexp_matches(s, p, 'g') AS m)"),
    ("regexp_replace", (r"<\1|\&|\2\\>\q", "1", "1"), r"regexp_replace(s, p, '<\1|\&|\2\\>\q')"),
    ("regexp_replace", ("X", "2", "0"), "regexp_replace(s, p, 'X', 2, 0)"),
    ("regexp_instr", ("1", "2", "1", "n", "1"), "regexp_instr(s, p, 1, 2, 1, 'n', 1)"),
    ("regexp_substr", ("2", "1", "i"), "regexp_substr(s, p, 2, 1, 'i')"), ("substring", (), "substring(s FROM p)"),
    ("regexp_split_to_array", (), "to_json(regexp_split_to_array(s, p))"),
)  # fmt: skip


def test_long_fixed_patterns_are_found_at_once() -> None:
    """The library would make tables for minutes."""
    text = "ab" * 3000
    began = time.process_time()
    assert list(matches(f"b{text}b", text, "")) == [(1, 6001)]
    assert list(matches(f"b{text}b", f"({text})+|c", "")) == [(1, 6001, 1, 6001)]
    assert time.process_time() - began < 3


@pytest.mark.parametrize("pattern", PATTERNS)
def test_regular_expressions_that_re2_has_not(both: tuple[Connection, Connection], pattern: str) -> None:
    for name, more, call in CALLS_OF_PATTERNS:
        query = f"SELECT ({call})::text FROM unnest(%s::text[]) AS s, (SELECT %s::text AS p) AS q"
        try:
            expected = [value for (value,) in both[1].execute(query.encode(), (list(SUBJECTS), pattern)).fetchall()]
        except psycopg.Error as error:
            with pytest.raises(Error, match=re.escape(error.diag.message_primary or "")):
                regexp(name, [SUBJECTS[1], pattern, *more])
            continue
        found = [regexp(name, [text, pattern, *more]) for text in SUBJECTS]
        if "json" in call:
            found, expected = ([json.loads(text or "null") for text in texts] for texts in (found, expected))
        assert found == expected, name


def test_intervals_as_text(both: tuple[Connection, Connection]) -> None:
    connection, postgres = both
    for client in both:
        client.execute("CREATE TABLE lengths (id int PRIMARY KEY, l interval, t time)")
        for number, length in enumerate(INTERVALS):
            client.execute("INSERT INTO lengths VALUES (%s, %s, %s)", (number, length, f"{number}:59:01.5"))
        client.execute("INSERT INTO lengths VALUES (100, NULL, NULL)")
    calls = [f"to_char({column}, '{pattern}')" for pattern in INTERVAL_PATTERNS for column in ("l", "t")]
    query = f"SELECT id, {', '.join(f'{call} AS c{number}' for number, call in enumerate(calls))} FROM lengths"
    connection.execute(f"CREATE MATERIALIZED VIEW lengths_as_texts AS {query}".encode())
    expected = postgres.execute(f"{query} ORDER BY id".encode()).fetchall()
    for found in (f"{query} ORDER BY id", "SELECT * FROM lengths_as_texts ORDER BY id"):
        for row, wanted in zip(connection.execute(found.encode()).fetchall(), expected, strict=True):
            assert dict(zip(calls, row[1:], strict=True)) == dict(zip(calls, wanted[1:], strict=True))


def test_moments_as_text(both: tuple[Connection, Connection]) -> None:
    """`to_char` by all patterns, in queries and in a view."""
    connection, postgres = both
    for client in both:
        client.execute("CREATE TABLE moments (m timestamp PRIMARY KEY, z timestamptz, d date)")
        for moment in MOMENTS:
            client.execute("INSERT INTO moments VALUES (%s, %s, %s)", (moment, moment + "+00", moment[:10]))
    calls = [f"to_char({column}, '{pattern}')" for pattern in PATTERNS for column in ("m", "z", "d")]
    query = f"SELECT m, {', '.join(f'{call} AS c{number}' for number, call in enumerate(calls))} FROM moments"
    connection.execute(f"CREATE MATERIALIZED VIEW texts AS {query}".encode())
    expected = postgres.execute(f"{query} ORDER BY m".encode()).fetchall()
    for found in (
        connection.execute(f"{query} ORDER BY m".encode()),
        connection.execute("SELECT * FROM texts ORDER BY m"),
    ):
        for row, wanted in zip(found.fetchall(), expected, strict=True):
            assert dict(zip(calls, row[1:], strict=True)) == dict(zip(calls, wanted[1:], strict=True))
    for zone in ("Asia/Kolkata", "America/St_Johns"):
        texts = []
        for client in both:
            client.execute(f"SET TimeZone = '{zone}'".encode())
            texts.append(client.execute("SELECT to_char(z, 'TZH:TZM OF HH24 TZ') FROM moments ORDER BY m").fetchall())
            client.execute("RESET TimeZone")
        assert texts[0] == texts[1]


@pytest.mark.parametrize("call", MOST)
def test_differences_of_aggregates(both: tuple[Connection, Connection], call: str) -> None:
    told = [client.execute(f"SELECT {call} FROM v".encode()) for client in both]
    assert told[0].fetchall() == told[1].fetchall()
    types = [[column.type_code for column in cursor.description or ()] for cursor in told]
    assert types[0] == types[1]


@pytest.mark.parametrize("query", [*NAMED_TYPES, *DEEP_ARRAYS])
def test_types_by_name_and_arrays_of_arrays(both: tuple[Connection, Connection], query: str) -> None:
    told = [client.execute(query.encode()).fetchall() for client in both]
    assert told[0] == told[1]


def test_arrays_of_arrays_in_views(both: tuple[Connection, Connection]) -> None:
    values = "('{{10,20}}'::int[])[1][2] AS a, CAST('{{{x}},{{y}}}' AS text[]) AS b"
    both[0].execute(f"CREATE MATERIALIZED VIEW deep AS SELECT id, {values} FROM v".encode())
    told = both[1].execute(f"SELECT id, {values} FROM v ORDER BY id".encode()).fetchall()
    assert both[0].execute("SELECT * FROM deep ORDER BY id").fetchall() == told


@pytest.mark.parametrize("query", OF_PARAMETERS)
def test_series_of_parameters(both: tuple[Connection, Connection], query: str) -> None:
    told = []
    for client in both:
        client.pgconn.prepare(b"", query.encode())
        found = client.pgconn.describe_prepared(b"")
        parameters = [found.param_type(number) for number in range(found.nparams)]
        told.append((parameters, [found.ftype(number) for number in range(found.nfields)]))
    assert told[0] == told[1]


@pytest.mark.parametrize("query", SERIES)
def test_series_of_integers_are_integers(both: tuple[Connection, Connection], query: str) -> None:
    told = [client.execute(query.encode()) for client in both]
    assert sorted(told[0].fetchall()) == sorted(told[1].fetchall())
    names = [[column.name for column in cursor.description or ()] for cursor in told]
    assert names[0] == names[1]


def test_series_of_columns_have_the_types_of_these(both: tuple[Connection, Connection]) -> None:
    connection, postgres = both
    for number, query in enumerate(SERIES_OF_COLUMNS):
        connection.execute(f"CREATE MATERIALIZED VIEW series_{number} AS {query}".encode())
        told = [
            client.execute(of.encode())
            for client, of in ((postgres, query), (connection, query), (connection, f"SELECT * FROM series_{number}"))
        ]
        types = [[column.type_code for column in cursor.description or ()] for cursor in told]
        rows = [sorted(cursor.fetchall(), key=lambda row: [(v is not None, v) for v in row]) for cursor in told]
        assert (types[0], rows[0]) == (types[1], rows[1]) == (types[2], rows[2]), query


def test_a_series_needs_a_step(both: tuple[Connection, Connection]) -> None:
    for client in both:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="step size cannot equal zero"):
            client.execute("SELECT * FROM generate_series(1, 5, 0)")


@pytest.mark.parametrize("expression", ERRORS)
def test_errors_have_postgresqls_words(both: tuple[Connection, Connection], expression: str) -> None:
    told = []
    for client in both:
        with pytest.raises(psycopg.Error) as raised:
            client.execute(f"SELECT {expression} FROM v".encode())
        told.append((raised.value.diag.sqlstate, raised.value.diag.message_primary, raised.value.diag.message_hint))
    assert told[0] == told[1]
    assert told[0][0] == ERRORS[expression]


@pytest.mark.parametrize("call", UNDEFINED)
def test_calls_that_no_function_takes(both: tuple[Connection, Connection], call: str) -> None:
    told = []
    for client in both:
        with pytest.raises(psycopg.Error) as raised:
            client.execute(f"SELECT {call} FROM v".encode())
        diag = raised.value.diag
        told.append((diag.sqlstate, diag.message_primary, diag.message_hint, diag.statement_position))
    assert told[0] == told[1]
    if "random" not in call and "version" not in call and "database" not in call:
        with pytest.raises(psycopg.Error) as raised:
            both[0].execute(f"CREATE MATERIALIZED VIEW undefined AS SELECT {call} FROM v".encode())
        assert (raised.value.diag.sqlstate, raised.value.diag.message_primary) == told[1][:2]


MISSPELLED = (
    "SELECT bb FROM hinted", "SELECT quotedName FROM hinted", "SELECT hinted.bc FROM hinted",
    "SELECT QUOTEDNAME FROM hinted x", 'SELECT hinted."quotedname" FROM hinted', "SELECT amoun FROM hinted",
    "SELECT amoun FROM hinted x, hinted y", "SELECT x.amoun FROM hinted x, hinted y", "SELECT zzz FROM hinted",
    "SELECT (SELECT amout FROM v) FROM hinted", "SELECT (SELECT 1 FROM v WHERE amnt = 1) FROM hinted h",
    "SELECT sum(amoun) FROM hinted GROUP BY a", "SELECT a FROM hinted WHERE amoun > 1 ORDER BY a",
)  # fmt: skip


@pytest.mark.parametrize("statement", MISSPELLED)
def test_hints_at_columns_are_postgresqls(both: tuple[Connection, Connection], statement: str) -> None:
    told = []
    for client in both:
        client.execute('CREATE TABLE IF NOT EXISTS hinted (a int, b text, "quotedName" int, amount int, amounts int)')
        with pytest.raises(psycopg.errors.UndefinedColumn) as raised:
            client.execute(statement.encode())
        told.append((raised.value.diag.message_hint, raised.value.diag.statement_position))
    assert told[0] == told[1]


@pytest.mark.parametrize("statement", MISTAKES)
def test_errors_have_postgresqls_positions(both: tuple[Connection, Connection], statement: str) -> None:
    told = []
    for client in both:
        with pytest.raises(psycopg.Error) as raised:
            client.execute(statement.encode())
        diag = raised.value.diag
        told.append((diag.sqlstate, diag.message_primary, diag.statement_position))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    "expression", ["date_trunc('week', iv)", "date_trunc('timezone', ts)", "date_trunc('ago', iv)"]
)
def test_errors_have_postgresqls_details(both: tuple[Connection, Connection], expression: str) -> None:
    details = []
    for client in both:
        with pytest.raises(psycopg.Error) as raised:
            client.execute(f"SELECT {expression} FROM v".encode())
        details.append((raised.value.diag.message_primary, raised.value.diag.message_detail))
    assert details[0] == details[1]


@pytest.mark.parametrize("name", ["inet", "cidr", "timetz", "money"])
def test_types_that_are_not_here(both: tuple[Connection, Connection], name: str) -> None:
    with pytest.raises(psycopg.errors.UndefinedObject, match=f'type "{name}" does not exist'):
        both[0].execute(f"SELECT s::{name} FROM v".encode())


def test_parts_of_moments_in_a_time_zone(both: tuple[Connection, Connection]) -> None:
    """A timestamp has no zone, so that none moves it: not over an hour that is left out, nor its seconds since 1970."""
    of_times = ("microseconds", "milliseconds", "second", "minute", "hour")
    of_days = (
        "day", "dow", "isodow", "doy", "week", "month", "quarter", "year", "isoyear", "decade", "century", "millennium",
        "epoch", "julian",
    )  # fmt: skip
    moments = (
        *(f"timestamp '{text}'" for text in ("2024-03-10 02:30:01.234567", "0044-03-15 23:59:59 BC", "1969-12-31")),
        *(f"timestamptz '{text}'" for text in ("2024-03-10 02:30:01.234567-05", "2024-11-03 05:30:00+00")),
        "date '2024-12-30'", "date '0001-01-01'",
    )  # fmt: skip
    found = []
    for client in both:
        client.execute("SET timezone = 'America/New_York'")
        rows = []
        for moment in moments:
            units = of_days if moment.startswith("date") else of_times + of_days
            parts = ", ".join(f"extract({unit} FROM x)::float8, date_part('{unit}', x)" for unit in units)
            rows.append(client.execute(f"SELECT {parts} FROM (SELECT {moment} AS x) AS s".encode()).fetchone())
        client.execute("RESET timezone")
        found.append(rows)
    for moment, ours, theirs in zip(moments, *found, strict=True):
        assert ours == pytest.approx(theirs), moment


def test_days_count_in_local_time(both: tuple[Connection, Connection]) -> None:
    """What is then ambiguous is the later one, and what a change of the clock leaves out is after it."""
    moments = ("2023-11-04 01:40-07", "2023-11-05 01:40-07", "2023-11-05 01:40-08", "2024-03-09 02:30-08", "infinity")
    lengths = (
        "'1 day'::interval",
        "interval '1' day",
        "interval '1 month -1 day 1 hour'",
        "interval '24 hours'",
        "'1 day'",
    )
    calls = [f"z + {length}" for length in lengths] + [f"z - {length}" for length in lengths[:-1]]
    values = ", ".join(f"(timestamptz '{moment}')" for moment in moments)
    found = []
    for client in both:
        client.execute("SET timezone = 'America/Los_Angeles'")
        query = f"SELECT {', '.join(f'({call})::text' for call in calls)} FROM (VALUES {values}) AS m(z)"
        found.append(client.execute(query.encode()).fetchall())
        client.execute("RESET timezone")
    for moment, ours, theirs in zip(moments, *found, strict=True):
        assert dict(zip(calls, ours, strict=True)) == dict(zip(calls, theirs, strict=True)), moment


def test_copy_reads_what_postgresql_writes(both: tuple[Connection, Connection]) -> None:
    rows = []
    for client in both:
        client.execute("CREATE TABLE copied (id int PRIMARY KEY, ts timestamp, d date, tz timestamptz, i interval)")
        with client.cursor().copy("COPY copied FROM STDIN") as copy:
            copy.write("1\t4713-01-01 00:00:00 BC\t0044-03-15 BC\t0044-03-15 10:00:00+00 BC\t-1 mons +30 days\n")
            copy.write("2\t2020-01-01 00:00:00\t2020-01-01\t2020-01-01 00:00:00+00\t-1 days +02:00:00\n")
        client.execute("SET timezone = 'UTC'")
        rows.append(
            client.execute("SELECT id, ts::text, d::text, tz::text, i::text FROM copied ORDER BY id").fetchall()
        )
    assert rows[0] == rows[1]


def test_aggregates_over_arrays(both: tuple[Connection, Connection]) -> None:
    calls = (
        "string_agg(s, s || '+' ORDER BY id DESC)", "string_agg(s, nullif(s, 'a') ORDER BY id)",
        "string_agg(DISTINCT s, '-' || s)", "string_agg(s, s ORDER BY id) FILTER (WHERE f > 0)",
        "sum(iv)::text", "avg(iv)::text", "sum(iv) FILTER (WHERE id > 2)", "sum(DISTINCT iv)",
        "jsonb_object_agg(a, id ORDER BY id)", "jsonb_object_agg(id, s) FILTER (WHERE id > 2)",
        "jsonb_object_agg(s, f ORDER BY id DESC) FILTER (WHERE s IS NOT NULL)",
    )  # fmt: skip
    listed = ", ".join(f"{call} AS x{number}" for number, call in enumerate(calls))
    query = f"SELECT a, {listed} FROM v GROUP BY a ORDER BY a"
    over = "SELECT id, sum(iv) OVER w, avg(iv) OVER w, jsonb_object_agg(id, s) OVER w FROM v WINDOW w AS ("
    windows = f"{over}PARTITION BY a ORDER BY id) ORDER BY id"
    counts = "SELECT id, count(*) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 9 PRECEDING) FROM v ORDER BY id"
    connection, postgres = both
    connection.execute(f"CREATE MATERIALIZED VIEW over_arrays AS {query}".encode())
    for statement in (query, windows, counts):
        expected = postgres.execute(statement.encode()).fetchall()
        assert connection.execute(statement.encode()).fetchall() == expected
    stored = connection.execute("SELECT * FROM over_arrays ORDER BY a").fetchall()
    assert stored == postgres.execute(query.encode()).fetchall()
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="field name must not be null"):
        connection.execute("SELECT jsonb_object_agg(NULL::text, 1)")


PERCENTILES = (
    "percentile_cont(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY f)",
    "percentile_cont('{0,1}'::float8[]) WITHIN GROUP (ORDER BY n DESC)",
    "percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY i + k) FILTER (WHERE id > 5)",
    "percentile_cont(ARRAY[0.5]::numeric[]) WITHIN GROUP (ORDER BY f::real)",
    "(percentile_cont(ARRAY[0.1, 0.35]) WITHIN GROUP (ORDER BY i))[2]",
    "percentile_disc(ARRAY[0.3, 0.355, 1]) WITHIN GROUP (ORDER BY n)",
    "percentile_disc(ARRAY[0.9, 0.5]) WITHIN GROUP (ORDER BY s)", "percentile_cont('0.5') WITHIN GROUP (ORDER BY f)",
    "percentile_disc(ARRAY[0.5, 0]) WITHIN GROUP (ORDER BY date '2024-01-01' + i DESC)",
    "percentile_disc(ARRAY[0.5, 0.25]) WITHIN GROUP (ORDER BY i * interval '1 hour')",
)  # fmt: skip


def test_arrays_of_percentiles(both: tuple[Connection, Connection]) -> None:
    """In queries, and in views over changes; a group of NULLs has none."""
    here, there = both
    for client in both:
        client.execute("CREATE TABLE spread (id int PRIMARY KEY, k int, f float8, n numeric(8,2), s varchar, i int)")
        client.execute("""INSERT INTO spread SELECT g, g % 3, g * 1.5, g * 0.25, chr(96 + g), g * g
                          FROM generate_series(1, 20) AS s (g)""")
        client.execute("INSERT INTO spread (id, k) VALUES (100, 0), (101, 9)")
    listed = ", ".join(f"{call} AS x{number}" for number, call in enumerate(PERCENTILES))
    query = f"SELECT k, {listed} FROM spread GROUP BY k ORDER BY k"
    here.execute(f"CREATE MATERIALIZED VIEW percentiles AS {query}".encode())
    for client in both:
        client.execute("DELETE FROM spread WHERE id % 4 = 1")
        client.execute("UPDATE spread SET f = -f, i = NULL WHERE id > 15")
    here.execute("FLUSH")
    expected = there.execute(query.encode()).fetchall()
    for of in (query, "SELECT * FROM percentiles ORDER BY k"):
        for found, row in zip(here.execute(of.encode()).fetchall(), expected, strict=True):
            for value, wanted, call in zip(found, row, ("k", *PERCENTILES), strict=True):
                is_float = wanted is not None and "cont" in call
                assert value == (pytest.approx(wanted) if is_float else wanted), call
    fractions = {"ARRAY[0.5, 1.5]": "22003", "-0.1": "22003", "ARRAY[0.5, NULL]": "0A000", "ARRAY[k / 9.0]": "0A000",
                 "ARRAY[]::float8[]": "0A000", "ARRAY[[0.5], [0.1]]": "0A000", "ARRAY['0.5']": "42883"}  # fmt: skip
    for fraction, sqlstate in fractions.items():
        query = f"SELECT k, percentile_cont({fraction}) WITHIN GROUP (ORDER BY f) AS x FROM spread GROUP BY k"
        for statement in (query, f"CREATE MATERIALIZED VIEW no_percentiles AS {query}"):
            with pytest.raises(psycopg.Error) as refused:
                here.execute(statement.encode())
            assert refused.value.sqlstate == sqlstate, statement


# The middle of the bucket of x, by hand: 0.99 * exp(ceil(ln(x) / 0.0200007) * 0.0200007).
def test_approximate_percentiles(both: tuple[Connection, Connection]) -> None:
    connection, _ = both
    connection.execute("CREATE TABLE measured (g int, v int)")
    connection.execute("INSERT INTO measured SELECT x % 2, x FROM generate_series(-1000, 1000) AS s(x)")
    call = "approx_percentile({}, 0.01) WITHIN GROUP (ORDER BY v)"
    listed = ", ".join(call.format(fraction) for fraction in (0.01, 0.1, 0.5, 0.9, 0.99))
    (found,) = connection.execute(f"SELECT {listed} FROM measured".encode()).fetchall()
    assert found == pytest.approx((-982.577948947, -804.461420683, 0, 804.461420683, 982.577948947))
    connection.execute(f"CREATE MATERIALIZED VIEW sketched AS SELECT {call.format(0.9)} AS p FROM measured".encode())
    connection.execute("DELETE FROM measured WHERE v > 100")
    connection.execute("FLUSH")
    assert connection.execute("SELECT p FROM sketched").fetchone() == pytest.approx((-10.0679,), rel=0.01)
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        connection.execute("SELECT approx_percentile(1.5) WITHIN GROUP (ORDER BY v) FROM measured")


def test_documents_have_values_as_json_has_them(both: tuple[Connection, Connection]) -> None:
    calls = ("f * 'Infinity'::float8", "'NaN'::real", "ts", "d", "f", "s", "iv", "f::numeric", "ARRAY[ts]", "s::bytea")
    objects = [f"jsonb_object_agg(id, {call})" for call in calls]
    arrays = [f"jsonb_agg({call} ORDER BY id)" for call in (*calls, "ROW(id, ts)", "ARRAY[ROW(f::numeric, d)]")]
    listed = ", ".join(f"{call} AS x{number}" for number, call in enumerate(objects + arrays))
    query = f"SELECT a, {listed} FROM v WHERE a <> 7 GROUP BY a ORDER BY a"
    connection, postgres = both
    connection.execute(f"CREATE MATERIALIZED VIEW of_documents AS {query}".encode())
    expected = postgres.execute(query.encode()).fetchall()
    assert connection.execute(query.encode()).fetchall() == expected
    assert connection.execute("SELECT * FROM of_documents ORDER BY a").fetchall() == expected
