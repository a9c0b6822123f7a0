-- The columns of the system's own relations, as DuckDB has them now that all are defined.
CREATE OR REPLACE TABLE pgc._system_columns AS
WITH col AS (
    SELECT table_name, column_name, column_index,
           replace(regexp_replace(data_type, '\(.*\)|\[\]', '', 'g'), 'TIMESTAMP WITH TIME ZONE', 'TIMESTAMPTZ') AS element,
           (length(regexp_extract(data_type, '(\[\])*$')) // 2)::SMALLINT AS dimensions
    FROM duckdb_columns() WHERE database_name = 'memory' AND schema_name IN ('pgc', 'infs', 'rwc')
)
SELECT r.id::UINTEGER AS relation_id, c.column_index::SMALLINT AS attnum, c.column_name AS name,
       if(c.dimensions > 0, t.array_oid, t.oid)::UINTEGER AS type_oid, if(c.dimensions > 0, -1, t.length)::SMALLINT AS length,
       c.dimensions
FROM col c
JOIN pgc._system_relations r ON r.name = c.table_name
JOIN pgc._types t ON t.duckdb = c.element AND t.name <> 'text';

-- The same with all types, in DuckDB's spelling: DuckDB takes 10 ms to describe its relations.
CREATE OR REPLACE TABLE pgc._described_columns AS
SELECT schema_name, table_name, column_name, data_type
FROM duckdb_columns() WHERE database_name = 'memory' AND schema_name IN ('pgc', 'infs', 'rwc');
