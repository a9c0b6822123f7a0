CREATE TABLE s1.t (k int PRIMARY KEY, row interval, b interval);
INSERT INTO s1.t VALUES (1, '02:00:00', NULL), (2, NULL, '1 day -12:00:00');
CREATE MATERIALIZED VIEW s1.v AS SELECT k, row, b, b = '12:00:00' AS c FROM s1.t;
UPDATE s1.t SET row = '03:00:00' WHERE b = '12:00:00';
UPDATE s1.t SET b = row + interval '1s' WHERE k = 1;
FLUSH;
UPDATE s1.t SET (row, b) = ('1 h', NULL);
UPDATE s1.t SET (row, b) = (SELECT max(row), min(row) + interval '2 h' FROM s1.t);
FLUSH;
