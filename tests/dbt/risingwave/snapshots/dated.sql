{% snapshot dated %}
{{ config(unique_key='id', strategy='timestamp', updated_at='joined', target_schema='analytics') }}
select id, name, joined from {{ ref('people') }} where joined is not null
{% endsnapshot %}
