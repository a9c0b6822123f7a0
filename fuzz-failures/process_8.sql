ALTER SYSTEM SET backfill_engine = auto;
ALTER SYSTEM SET streaming_engine = duckdb;
ALTER SYSTEM SET refresh_mode = incremental;
CREATE TABLE s2.t0 (h varchar, weight bigint, f double precision, k int, d bytea, "select" numeric(8,2), PRIMARY KEY (k));
CREATE TABLE s1.t0 ("select" numeric(8,2), k int, h varchar, e bytea, f double precision);
CREATE TABLE s1.t2 (k int, weight bigint, f double precision, "%s" timestamp, b numeric, e bytea);
INSERT INTO s2.t0 VALUES ('b', 0, 3.75, 0, '\x61', 3);
INSERT INTO s1.t0 VALUES (-1.10, 5, 'b', '\x', 2), (3, NULL, '', '\x00ff', 0), (2.25, 0, 'ab', NULL, 3.75), (3, 1, NULL, '\x', 0.5), (3, 0, 'c', NULL, -1.25);
INSERT INTO s1.t2 VALUES (-1, -1, -1.25, '2024-02-29 00:00:30', 12.3456789, '\x'), (2, -1, 3.75, '2024-02-29 00:00:00', NULL, '\x00ff'), (1, 0, 3.75, '2024-02-29 00:00:00', -3.25, NULL);
CREATE MATERIALIZED VIEW s1.v0 AS SELECT r1."%s" AS epoch, r1.e AS e, sum(r1.k) AS m0, count(r1."%s") AS m1 FROM s1.t2 AS r1 WHERE (r1."%s") IN ('2024-02-29 00:01:59'::timestamp, '2024-02-29 00:01:59'::timestamp) GROUP BY r1."%s", r1.e;
BEGIN;
DELETE FROM s1.t0 WHERE ("select") <= (length(e));
COMMIT;
CREATE MATERIALIZED VIEW s2.v1 AS SELECT * FROM s1.t0 AS l NATURAL LEFT JOIN s1.v0 AS r;
DELETE FROM s1.t0 WHERE NOT ("select") <= 2.25::numeric(8,2);
CREATE MATERIALIZED VIEW s1.v2 AS SELECT r2.m1 AS c0, r2.epoch AS c1, r2.m0 AS c2, ntile(2) OVER (PARTITION BY r2.m1 ORDER BY r2.m1, r2.epoch DESC, r2.m0) AS w0 FROM s1.v0 AS r2 LEFT JOIN (SELECT epoch, e, m0, m1 FROM s1.v0 WHERE (least(('2023-12-31'::date), ('2023-12-31'::date), '2024-01-01'::date)) < (least(epoch, epoch, '2024-02-29 00:00:00'::timestamp))) AS r3 ON r2.m1 = r3.m0 WHERE r3.m1 NOT IN (SELECT r4.m0 FROM (SELECT e, "select", k, h, f, epoch, m0, m1 FROM s2.v1 WHERE NOT m1 <= 0::bigint) AS r4 WHERE NOT r4.h <= 'ab'::varchar);
INSERT INTO s1.t2 VALUES (5, 1, 2, NULL, 2, '\x00ff'), (1, -1, -1.25, '2024-02-29 00:00:00', 0.1, '\x00ff');
CREATE MATERIALIZED VIEW s1.v3 AS SELECT c0, epoch FROM (SELECT *, row_number() OVER (PARTITION BY c0 ORDER BY c0 DESC, epoch DESC NULLS LAST) AS rn FROM (SELECT ((-1.10)::numeric(8,2)) + ((-1.10)::numeric(8,2)) AS c0, r5.epoch AS epoch FROM s1.v0 AS r5 WHERE (split_part((NULL::varchar), 'b', 1)) LIKE 'a%') AS i) AS o WHERE rn <= 2;
DELETE FROM s1.t0 WHERE ('2024-01-01'::date) < (least(('2024-02-29 00:00:00'::timestamp), ('2023-12-31 23:59:59.5'::timestamp), '2024-02-29 00:00:00'::timestamp));
CREATE MATERIALIZED VIEW s1.v4 AS SELECT r6.w0 AS w0, max(NULL::numeric(8,2)) AS m0, var_pop(r6.w0) AS m1, count(r6.c0) AS m2 FROM s1.v2 AS r6 WHERE r6.c1 = r6.c1 GROUP BY r6.w0 HAVING sum(DISTINCT r6.c0) IS NOT NULL;
FLUSH;
BEGIN;
DELETE FROM s1.t2 WHERE (lpad(('a'::varchar), 3, '*')) ILIKE 'A%';
INSERT INTO s1.t2 VALUES (2, 3, 0.5, '2023-12-31 23:59:59.5', NULL, NULL), (4, NULL, -1.25, '2024-02-29 00:01:59', NULL, '\x00ff'), (-1, 3, 0.5, NULL, 12.3456789, '\x'), (4, 3, 0, '2024-02-29 00:01:59', -3.25, '\x00ff');
INSERT INTO s2.t0 VALUES ('a', 1, NULL, 3, '\x61', NULL) ON CONFLICT DO NOTHING;
INSERT INTO s1.t0 VALUES (NULL, -1, '', NULL, NULL);
COMMIT;
FLUSH;
DELETE FROM s1.t2 WHERE k IS NULL;
INSERT INTO s1.t2 VALUES (4, -1, 0, '2023-12-31 23:59:59.5', 1.5, '\x00ff'), (4, 2, NULL, '2024-02-29 00:00:00', 12.3456789, '\x'), (1, NULL, NULL, '2023-12-31 23:59:59.5', NULL, NULL);
UPDATE s1.t2 SET b = b WHERE weight NOT IN (1::bigint, (3::bigint));
FLUSH;
BEGIN;
DELETE FROM s1.t0 WHERE (CASE ('{1}'::int[]) WHEN '{NULL}'::int[] THEN (NULL::int[]) ELSE ('{2,NULL}'::int[]) END) @> ('{1}'::int[]);
DELETE FROM s1.t0 WHERE k IS NOT NULL;
INSERT INTO s1.t2 VALUES (3, -1, 0, '2024-02-29 00:00:30', 0, NULL);
INSERT INTO s1.t0 VALUES (2.25, 5, NULL, '\x', NULL), (3, NULL, '', NULL, 3.75);
INSERT INTO s1.t2 VALUES (4, 3, 0, '2023-12-31 23:59:59.5', -3.25, '\x'), (4, 7, NULL, NULL, 0.1, '\x61');
COMMIT;
FLUSH;
INSERT INTO s2.t0 VALUES ('a', 7, 0, 3, '\x', NULL), ('ab', 3, 3.75, 4, '\x', 0);
FLUSH;
UPDATE s2.t0 SET h = 'c' WHERE NOT k <= -1;
FLUSH;
BEGIN;
UPDATE s1.t2 SET e = e WHERE e NOT IN ('\x61'::bytea, e);
DELETE FROM s1.t2 WHERE (-1) <> 5;
INSERT INTO s1.t2 VALUES (NULL, 1, -1.25, '2024-02-29 00:00:00', 12.3456789, '\x61');
ROLLBACK;
FLUSH;

-- a view is not its query
-- s2.v1 AS SELECT * FROM s1.t0 AS l NATURAL LEFT JOIN s1.v0 AS r
-- extra   (None, '2.25', '0', 'ab', '3.75', None, None, None)
-- missing ('2.25', '0', 'ab', None, '3.75', None, None, None)
-- what PostgreSQL has too
