ALTER SYSTEM SET backfill_engine = auto;
ALTER SYSTEM SET streaming_engine = duckdb;
ALTER SYSTEM SET refresh_mode = incremental;
CREATE TABLE s1.t0 (k int, b smallint, a interval);
CREATE TABLE s2.t0 (filename int, b smallint, k int, value jsonb, a interval, "naïve" bigint, PRIMARY KEY (b));
CREATE TABLE s2.t2 (b smallint, "it's" timestamp, "$1" varchar, k int, g int[], PRIMARY KEY (b, "$1"));
CREATE TABLE s1.t3 (k int, h varchar[], g int[], value jsonb, PRIMARY KEY (k));
INSERT INTO s1.t0 VALUES (2147483647, 2, NULL), (NULL, 32767, '1000 days 00:00:00.000001'), (NULL, 2, '1 month'), (5, -32768, NULL), (-2147483648, 0, '1 day');
INSERT INTO s2.t0 VALUES (NULL, -1, 0, '[1, 2]', '0', 9223372036854775807) ON CONFLICT DO NOTHING;
INSERT INTO s2.t2 VALUES (-1, '2024-02-29 00:00:30', 'c', 1, '{3,1,3}') ON CONFLICT (b, "$1") DO UPDATE SET k = excluded.k;
INSERT INTO s1.t3 VALUES (1, NULL, '{}', NULL), (3, NULL, '{3,1,3}', NULL), (4, '{}', '{1}', 'null'), (0, NULL, '{NULL}', '{"a": 1}'), (2, '{a,b}', '{2,NULL}', '[1, 2]');
CREATE MATERIALIZED VIEW s2.v0 AS SELECT * FROM s1.t0 WHERE (nullif((''::varchar), (NULL::varchar))) LIKE '%b%';
INSERT INTO s2.t2 VALUES (2, '2024-02-29 00:00:30', '', -1, '{NULL}'), (1, '2024-02-29 00:00:00', 'b', 2147483647, '{2147483647,-2147483648}'), (-1, '2023-12-31 23:59:59.5', 'a', 2147483647, '{1}');
CREATE MATERIALIZED VIEW s1.v1 AS SELECT r1.k AS c0, r1.h AS c1, 'ab'::varchar AS value FROM s1.t3 AS r1 RIGHT JOIN s1.t3 AS r2 ON r1.k = r2.k AND r1.k = r2.k;
BEGIN;
DELETE FROM s1.t0;
COMMIT;
CREATE MATERIALIZED VIEW s2.v2 AS SELECT r3.g AS g0, r3.h AS g1, sum(r3.k) FILTER (WHERE r3.value IS NULL) AS m, grouping(r3.g) AS gr FROM s1.t3 AS r3 WHERE NOT false GROUP BY CUBE (r3.g, r3.h);
INSERT INTO s2.t0 VALUES (4, 0, NULL, '1', '1 year 2 days 00:00:01.5', 2);
CREATE MATERIALIZED VIEW s1.v3 AS SELECT r4.b AS c0, CASE WHEN (coalesce(false, false)) THEN (r4.a + INTERVAL '1 hour') END AS a FROM s1.t0 AS r4 WHERE r4.k < 5 ORDER BY c0, a DESC LIMIT 1 OFFSET 2;
DELETE FROM s1.t0 WHERE k IS NOT DISTINCT FROM 1;
CREATE MATERIALIZED VIEW s2.v4 AS SELECT round((2.25::numeric(8,2)))::int AS c0, r6.b AS c1, (SELECT count(r7.filename) FROM s2.t0 AS r7 WHERE r7.filename = r5.k) AS q FROM s2.v0 AS r5 LEFT JOIN s1.t0 AS r6 ON r5.k IS NOT DISTINCT FROM r6.b WHERE (greatest(1, (NULL::int))) = ANY(('{3,1,3}'::int[]));
UPDATE s1.t3 SET h = string_to_array((NULL::varchar), 'b') WHERE h = '{a,b}'::varchar[];
FLUSH;
INSERT INTO s2.t0 VALUES (2147483647, -1, -1, NULL, '1 day', 3), (4, 3, 3, NULL, '1 day', NULL);
FLUSH;
FLUSH;
UPDATE s1.t0 SET b = 32767 WHERE k IS DISTINCT FROM k;
DELETE FROM s2.t2 WHERE ("$1") IS DISTINCT FROM ('b'::varchar);
FLUSH;
DELETE FROM s2.t0 WHERE filename BETWEEN -1 AND 3;
INSERT INTO s2.t0 VALUES (1, -1, 2147483647, NULL, NULL, 2) ON CONFLICT DO NOTHING;
DELETE FROM s1.t3 WHERE g > '{1}'::int[];
FLUSH;
INSERT INTO s1.t0 VALUES (3, NULL, NULL);
INSERT INTO s2.t0 VALUES (0, -1, NULL, '{"a": {"b": [null, "x y"]}}', '1 year 2 days 00:00:01.5', 0), (-1, 1, NULL, 'true', NULL, 9007199254740993), (NULL, 0, 1, 'true', NULL, NULL) ON CONFLICT (b) DO UPDATE SET k = excluded.k;
INSERT INTO s2.t0 VALUES (2147483647, 3, 4, NULL, '1 month', 3), (2147483647, 0, -2147483648, NULL, NULL, -1);
INSERT INTO s1.t0 VALUES (NULL, 0, '1 day'), (-1, -1, NULL);
INSERT INTO s2.t2 VALUES (0, '2024-02-29 00:00:00', '', NULL, '{3,1,3}'), (3, '2024-02-29 00:00:00', 'żółw', 0, '{2,NULL}'), (3, '2024-02-29 00:01:59', 'ab', 2, '{3,1,3}');
FLUSH;
FLUSH;

-- a view has other types
-- s1.v1 AS SELECT r1.k AS c0, r1.h AS c1, 'ab'::varchar AS value FROM s1.t3 AS r1 RIGHT JOIN s1.t3 AS r2 ON r1.k = r2.k AND r1.k = r2.k
-- text[] is varchar[] in PostgreSQL
