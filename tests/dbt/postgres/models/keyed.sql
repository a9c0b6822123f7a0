{{ config(materialized='incremental', contract={'enforced': true}, unique_key='id', on_schema_change='append_new_columns') }}
select id, name, balance from {{ ref('rich') }}
