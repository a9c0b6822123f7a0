{% snapshot history %}
{{ config(unique_key='id', strategy='check', check_cols=['name', 'balance'], target_schema='analytics') }}
select id, name, balance from {{ ref('people') }}
{% endsnapshot %}
