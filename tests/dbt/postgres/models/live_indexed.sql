{{ config(materialized='materialized_view', on_configuration_change='apply',
          indexes=[{'columns': ['team']}] + var('more_indexes', [])) }}
select team, count(*) as members from {{ ref('people') }} group by team
