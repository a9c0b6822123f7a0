{{ config(materialized='table') }}
select team, count(*) as members, sum(balance) as balance from {{ ref('staged') }} group by team
