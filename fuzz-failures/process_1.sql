ALTER SYSTEM SET backfill_engine = auto;
ALTER SYSTEM SET streaming_engine = duckdb;
ALTER SYSTEM SET refresh_mode = incremental;
CREATE TABLE s1.t0 (k int, "it's" int, sum boolean);
CREATE TABLE s1.t1 (k int, a varchar[], e boolean, c varchar, b timestamptz, PRIMARY KEY (c, e));
CREATE TABLE s1.t2 (f double precision, b timestamptz, sum boolean, k int, "it's" int, PRIMARY KEY (sum));
CREATE TABLE s1.t3 (n varchar, sum boolean, d boolean, f double precision, k int, PRIMARY KEY (d, k));
INSERT INTO s1.t0 VALUES (0, -1, NULL);
INSERT INTO s1.t1 VALUES (3, '{NULL,b}', false, 'a', '2023-12-31 23:59:59.5+00'), (NULL, NULL, true, '', NULL), (-1, NULL, false, 'c', '2024-02-29 00:01:59+00'), (NULL, '{a}', false, 'ab', '2023-12-31 23:59:59.5+00'), (4, '{"x,y",""}', true, 'a', NULL), (0, '{"x,y",""}', true, 'ab', '2023-12-31 23:59:59.5+00');
INSERT INTO s1.t2 VALUES (0, '2024-02-29 00:01:59+00', false, 1, 5), (-1.25, '2024-02-29 00:01:59+00', true, 5, 0);
INSERT INTO s1.t3 VALUES ('żółw', false, false, 2, 1) ON CONFLICT DO NOTHING;
CREATE MATERIALIZED VIEW s1.v0 AS SELECT r1.e AS c0, r1.k AS c1, r1.a AS c2, nth_value(r1.e, 2) OVER (PARTITION BY r1.e ORDER BY r1.e DESC NULLS LAST, r1.k, r1.a NULLS FIRST ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS w0, lead(r1.e, 2) OVER (PARTITION BY r1.e ORDER BY r1.e DESC NULLS LAST, r1.k, r1.a NULLS FIRST) AS w1, count(r1.e) OVER (PARTITION BY r1.e ORDER BY r1.e DESC NULLS LAST, r1.k, r1.a NULLS FIRST ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS w2 FROM s1.t1 AS r1 WHERE NOT EXISTS (SELECT 1 FROM s1.t3 AS r2 WHERE r2.n = r1.c AND r2.k <> r1.k);
INSERT INTO s1.t1 VALUES (1, '{}', false, 'b', '2024-02-29 00:00:00+00'), (0, '{"x,y",""}', true, '', '2024-02-29 00:00:00+00') ON CONFLICT DO NOTHING;
CREATE MATERIALIZED VIEW s2.v1 AS SELECT DISTINCT ON (k) r3.k AS k FROM s1.t0 AS r3 JOIN s1.t2 AS r4 USING ("it's") WHERE r4.sum = true ORDER BY k;
DELETE FROM s1.t0 WHERE true > false;
CREATE MATERIALIZED VIEW s1.v2 AS SELECT DISTINCT ON (c0) r5.sum AS c0 FROM s1.t3 AS r5 WHERE r5.d IS DISTINCT FROM r5.sum ORDER BY c0;
BEGIN;
INSERT INTO s1.t3 VALUES ('', true, false, 3.75, 0), ('żółw', false, true, NULL, 0);
COMMIT;
CREATE MATERIALIZED VIEW s1.v3 AS SELECT c0, c1 FROM (SELECT *, row_number() OVER (PARTITION BY c0 ORDER BY c0, c1) AS rn FROM (SELECT r9.c2 AS c0, 0::numeric(8,2) AS c1 FROM (SELECT CASE WHEN (r8.w1 AND r8.w1) THEN (CASE (NULL::double precision) WHEN 2::double precision THEN ((-1.25)::double precision) ELSE (3.75::double precision) END) END AS c0 FROM s2.v1 AS r7 JOIN s1.v0 AS r8 ON r7.k = r8.w2 AND r8.w0 = r8.c0) AS r6 CROSS JOIN (SELECT r10.c0 AS "$1", r10.w1 AS w1, r11.k AS c2 FROM (SELECT c0, c1, c2, w0, w1, w2 FROM s1.v0 WHERE c0 BETWEEN true AND true) AS r10 LEFT JOIN s1.t0 AS r11 ON r10.w2 = r11.k) AS r9 FULL JOIN s1.t0 AS r12 ON r9.c2 = r12."it's" AND r9.c2 = r12.k WHERE ((('{"x,y",""}'::varchar[]))::text) LIKE 'a%') AS i) AS o WHERE rn <= 1;
BEGIN;
UPDATE s1.t1 SET k = k WHERE b = ('2024-02-29 00:00:00+00'::timestamptz);
COMMIT;
CREATE MATERIALIZED VIEW s2.v4 AS SELECT (2::double precision) + (0::double precision) AS sum, 5 AS "it's" FROM s1.t0 AS r13;
INSERT INTO s1.t1 VALUES (3, '{a,b}', false, 'b', NULL), (1, '{"x,y",""}', true, 'a', '2023-12-31 23:59:59.5+00');
FLUSH;
INSERT INTO s1.t2 VALUES (0.5, NULL, true, NULL, 2);
FLUSH;
INSERT INTO s1.t1 VALUES (4, '{}', false, 'ab', '2024-02-29 00:01:59+00') ON CONFLICT DO NOTHING;
INSERT INTO s1.t2 VALUES (-1.25, '2024-02-29 00:00:00+00', false, -1, 2);
FLUSH;
FLUSH;
BEGIN;
UPDATE s1.t3 SET sum = false WHERE d IN (false, true);
UPDATE s1.t2 SET f = NULL WHERE k IS NULL;
COMMIT;
FLUSH;
FLUSH;
INSERT INTO s1.t2 VALUES (0, '2024-02-29 00:01:59+00', true, 0, 4);
FLUSH;

-- a view has other types
-- s1.v0 AS SELECT r1.e AS c0, r1.k AS c1, r1.a AS c2, nth_value(r1.e, 2) OVER (PARTITION BY r1.e ORDER BY r1.e DESC NULLS LAST, r1.k, r1.a NULLS FIRST ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS w0, lead(r1.e, 2) OVER (PARTITION BY r1.e ORDER BY r1.e DESC NULLS LAST, r1.k, r1.a NULLS FIRST) AS w1, count(r1.e) OVER (PARTITION BY r1.e ORDER BY r1.e DESC NULLS LAST, r1.k, r1.a NULLS FIRST ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS w2 FROM s1.t1 AS r1 WHERE NOT EXISTS (SELECT 1 FROM s1.t3 AS r2 WHERE r2.n = r1.c AND r2.k <> r1.k)
-- text[] is varchar[] in PostgreSQL
