{{ config(materialized='table', unlogged=true, grants={'select': ['reader']},
          indexes=[{'columns': ['members', 'team'], 'type': 'btree'}]) }}
select team, {{ function('twice') }}(count(*)) as members from {{ ref('people') }} group by team
