{{ config(materialized='subscription', retention='2 days') }}
{{ ref('order_days') }}
