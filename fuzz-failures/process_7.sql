ALTER SYSTEM SET backfill_engine = auto;
ALTER SYSTEM SET streaming_engine = duckdb;
ALTER SYSTEM SET refresh_mode = incremental;
CREATE TABLE s1.t0 (d bytea, g numeric(8,2), h int[], f varchar[], k int);
CREATE TABLE s2.t1 (k int, b int[], count bytea, "Group" int, g numeric(8,2));
INSERT INTO s1.t0 VALUES ('\x61', 2.25, '{1,2}', '{a}', 2), ('\x00ff', NULL, '{NULL}', NULL, 4), ('\x', 3, '{}', '{"x,y",""}', 2), ('\x00ff', 3, '{NULL}', NULL, NULL), ('\x', 0, '{1,2}', NULL, NULL), ('\x', 2.25, '{}', '{a,b}', 5);
INSERT INTO s2.t1 VALUES (-1, '{2,NULL}', '\x61', NULL, 0), (1, '{1}', '\x', NULL, 0), (1, '{}', NULL, -1, NULL), (2, NULL, '\x', 2, 3), (3, '{1,2}', '\x00ff', 5, 3);
CREATE MATERIALIZED VIEW s1.v0 AS SELECT avg(r2.k) FILTER (WHERE r3.h IN ('{3,1,3}'::int[], '{NULL}'::int[])) AS m0, array_agg(DISTINCT r1.k ORDER BY r1.k DESC) AS m1, sum(r1.k) AS m2 FROM (SELECT d, g, h, f, k FROM s1.t0 WHERE h = '{1,2}'::int[]) AS r1 LEFT JOIN s2.t1 AS r2 ON r1.k = r2.k RIGHT JOIN s1.t0 AS r3 USING (h) WHERE (coalesce(('2024-02-29'::date), ('2024-01-01'::date))) < (('2024-02-29 00:01:59'::timestamp) - INTERVAL '1 day') HAVING count(''::varchar) > 2;
CREATE MATERIALIZED VIEW s1.v1 AS SELECT r4.k AS k, least(('2024-02-29 00:00:00'::timestamp), ((('2024-02-29'::date))::timestamp), '2024-02-29 00:01:59'::timestamp) AS c1, r4.f AS c0, (SELECT count(r5.k) FROM s2.t1 AS r5 WHERE r5."Group" = r4.k) AS q FROM s1.t0 AS r4 WHERE r4.k IS DISTINCT FROM r4.k;
INSERT INTO s2.t1 VALUES (-1, '{1}', '\x61', 0, 2.25), (-1, '{1}', NULL, -1, 0), (NULL, '{NULL}', '\x00ff', NULL, 0), (NULL, '{}', '\x', -1, 3);
CREATE MATERIALIZED VIEW s1.v2 AS SELECT r6.c0 AS c0, count(DISTINCT r6.c0) AS m0 FROM s1.v1 AS r6 JOIN (SELECT m0, m1, m2 FROM s1.v0 WHERE m1 = '{1}'::int[]) AS r7 ON r6.k IS NOT DISTINCT FROM r7.m2 WHERE (NULL::int) = 3 GROUP BY r6.c0;
INSERT INTO s2.t1 VALUES (3, '{}', NULL, 2, NULL), (1, '{NULL}', '\x00ff', NULL, 1.5);
CREATE MATERIALIZED VIEW s1.v3 AS SELECT * FROM s1.v2;
DELETE FROM s1.t0 WHERE (false) IS UNKNOWN;
CREATE MATERIALIZED VIEW s2.v4 AS SELECT r8.m0 AS c0, r12.c0 AS c1, r12.q AS c2, count(*) OVER (PARTITION BY r8.m0 ORDER BY r12.q) AS w0 FROM s1.v2 AS r8 JOIN (SELECT ((2::double precision) * 2) * 2 AS snapshot, r10.k AS r1 FROM s2.t1 AS r10 RIGHT JOIN s1.v1 AS r11 ON r10."Group" IS NOT DISTINCT FROM r11.k) AS r9 ON r8.m0 = r9.r1 RIGHT JOIN s1.v1 AS r12 ON r9.r1 = r12.q AND r8.c0 IS NULL WHERE r8.m0 <> 3::bigint;
FLUSH;
INSERT INTO s2.t1 VALUES (3, '{1}', '\x61', -1, 3);
INSERT INTO s1.t0 VALUES (NULL, 3, '{3,1,3}', NULL, NULL);
UPDATE s1.t0 SET d = '\x61' WHERE NOT f <= '{"x,y",""}'::varchar[];
UPDATE s1.t0 SET f = f WHERE h @> h;
INSERT INTO s2.t1 VALUES (5, '{2,NULL}', '\x', 2, 1.5), (3, '{3,1,3}', '\x00ff', 4, 1.5), (5, '{3,1,3}', '\x', 0, 1.5), (NULL, '{1,2}', '\x', 3, 1.5);
FLUSH;
UPDATE s1.t0 SET d = '\x' WHERE g = (1.5::numeric(8,2));
DELETE FROM s1.t0;
UPDATE s1.t0 SET k = 0 WHERE f <> '{NULL,b}'::varchar[];
DELETE FROM s2.t1;
FLUSH;
FLUSH;
BEGIN;
INSERT INTO s1.t0 VALUES ('\x', 0, '{1,2}', '{NULL,b}', NULL), ('\x', 2.25, '{NULL}', '{}', 5);
UPDATE s1.t0 SET h = NULL;
UPDATE s1.t0 SET k = NULL WHERE (CASE WHEN false THEN ('[1, 2]'::jsonb) ELSE ('[1, 2]'::jsonb) END) @> '{"a": 1}'::jsonb;
DELETE FROM s1.t0;
INSERT INTO s2.t1 VALUES (1, '{2,NULL}', '\x00ff', 5, 2.25), (0, '{1}', '\x', NULL, -1.10), (-1, '{1,2}', '\x', 2, 1.5), (-1, NULL, NULL, 1, 3);
COMMIT;
FLUSH;
INSERT INTO s1.t0 VALUES ('\x00ff', 2.25, NULL, '{a}', 3);
UPDATE s2.t1 SET g = g WHERE (('2023-12-31'::date) + 1) < ('2024-02-29 00:00:30'::timestamp);
INSERT INTO s2.t1 VALUES (3, '{2,NULL}', '\x00ff', 5, -1.10), (4, '{3,1,3}', '\x61', -1, NULL);
FLUSH;
UPDATE s2.t1 SET count = '\x00ff' WHERE ((('2024-02-29 00:00:00'::timestamp))::text) LIKE 'a%';
INSERT INTO s2.t1 VALUES (2, '{3,1,3}', NULL, 5, -1.10), (4, '{NULL}', '\x', -1, -1.10), (4, '{NULL}', '\x', 4, 2.25), (-1, '{NULL}', '\x00ff', 3, NULL);
INSERT INTO s2.t1 VALUES (0, '{}', NULL, NULL, 0), (-1, '{NULL}', '\x00ff', NULL, 1.5), (NULL, '{1,2}', '\x', NULL, 1.5);
FLUSH;

-- a view has other types
-- s1.v1 AS SELECT r4.k AS k, least(('2024-02-29 00:00:00'::timestamp), ((('2024-02-29'::date))::timestamp), '2024-02-29 00:01:59'::timestamp) AS c1, r4.f AS c0, (SELECT count(r5.k) FROM s2.t1 AS r5 WHERE r5."Group" = r4.k) AS q FROM s1.t0 AS r4 WHERE r4.k IS DISTINCT FROM r4.k
-- text[] is varchar[] in PostgreSQL
