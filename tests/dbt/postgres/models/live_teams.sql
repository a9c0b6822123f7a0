{{ config(materialized='materialized_view') }}
select team, count(*) as members, max(balance) as richest from {{ ref('people') }} group by team
