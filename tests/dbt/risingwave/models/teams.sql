{{ config(materialized='table', grants={'select': ['reader']}) }}
select team, count(*) as members, sum(balance) as balance from {{ ref('staged') }} group by team
