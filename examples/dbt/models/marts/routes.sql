-- Filled on a Spark application of its own while dbt waits for it.
{{ config(enable_serverless_backfill=true, background_ddl=true) }}
select origin, dest, count(*) as flights, avg(dep_delay) as mean_delay
from {{ ref('departures') }}
group by origin, dest
