{{ config(materialized='view', zero_downtime={'enabled': true, 'immediate_cleanup': true}) }}
select id, name, coalesce(team, 'none') as team, balance, joined {{ var('more_staged', '') }} from {{ ref('people') }}
