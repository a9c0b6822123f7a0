{{ config(materialized='view') }}
select id, name, coalesce(team, 'none') as team, balance, joined from {{ ref('people') }}
