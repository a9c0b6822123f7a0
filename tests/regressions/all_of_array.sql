CREATE TABLE t (a int, d int[], s varchar);
INSERT INTO t VALUES (1, '{1,1}', 'a'), (2, '{2,NULL}', 'b'), (3, '{}', NULL), (4, NULL, 'd'), (NULL, '{1}', 'e');
CREATE MATERIALIZED VIEW v AS SELECT a, a = ALL(d) AS e, a <> ALL(d) AS n, a > ALL(ARRAY[0, 1]) AS g FROM t;
CREATE MATERIALIZED VIEW w AS SELECT s FROM t WHERE a = ALL((array_remove(d, 2))) OR s LIKE ALL(ARRAY['%', 'd']);
FLUSH;
DELETE FROM t WHERE a <> ALL('{1,2,3}'::int[]);
UPDATE t SET d = '{3}' WHERE a <= ALL(d);
FLUSH;
