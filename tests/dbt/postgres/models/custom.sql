{{ config(materialized='view', schema='marts', alias='other_name') }}
select * from {{ ref('teams') }}
