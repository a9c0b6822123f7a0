{{ config(materialized='incremental', incremental_strategy='append') }}
select id, name, balance from {{ ref('staged') }}
{% if is_incremental() %} where id >= (select max(id) from {{ this }}) {% endif %}
