{{ config(materialized='table', contract={'enforced': true}) }}
select id, name from {{ ref('rich') }}
