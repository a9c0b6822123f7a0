{{ config(materialized='materialized_view', background_ddl=true, indexes=[{'columns': ['payload']}],
          zero_downtime={'enabled': true, 'immediate_cleanup': true}) }}
select id, payload {{ var('more_even', '') }} from {{ ref('generated') }} where id % 2 = 0
