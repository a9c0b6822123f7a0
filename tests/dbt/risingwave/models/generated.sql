{{ config(materialized='source', source_rate_limit=1000) }}
create source {{ this }} (id int, payload varchar) with (
  connector = 'datagen', fields.id.kind = 'sequence', fields.id.start = '1', fields.id.end = '50',
  datagen.rows.per.second = '1000'
) format plain encode json
