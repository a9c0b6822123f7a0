{{ config(materialized='materialized_view', zero_downtime={'enabled': true, 'immediate_cleanup': true},
          grants={'select': ['reader']}) }}
select team, count(*) as members, max(balance) as richest {{ var('more_teams', '') }} from {{ ref('people') }} group by team
