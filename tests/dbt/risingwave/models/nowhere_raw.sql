{{ config(materialized='sink') }}
create sink {{ this }} from {{ ref('order_days') }}
with (connector = 'blackhole', type = 'append-only', force_append_only = 'true')
