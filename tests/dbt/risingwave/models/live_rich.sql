{{ config(materialized='materialized_view', background_ddl=true, enable_serverless_backfill=true,
          streaming_parallelism_for_backfill=2) }}
select id, name, balance from {{ ref('rich') }}
