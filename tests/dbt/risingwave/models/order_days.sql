{{ config(materialized='materializedview', indexes=[{'columns': ['day'], 'distributed_by': ['day']}]) }}
select at::date as day, count(*) as orders, {{ function('twice') }}(sum(amount)) as doubled from {{ ref('orders') }} group by 1
