{{ config(materialized='materialized_view', backfill_order=['analytics.people -> analytics.teams']) }}
select p.id, t.members from {{ ref('people') }} p join {{ ref('teams') }} t on t.team = p.team
