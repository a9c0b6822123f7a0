{{ config(materialized='ephemeral') }}
select * from {{ ref('staged') }} where balance >= 10
