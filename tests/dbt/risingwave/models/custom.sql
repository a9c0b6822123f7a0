{{ config(materialized='materialized_view', schema='marts', alias='other_name') }}
select team, members * 2 as twice from {{ ref('live_teams') }}
