{{ config(materialized='sink', background_ddl=true, connector='fs',
          connector_parameters={'fs.path': env_var('CHECKS_FILES') ~ '/out'}, data_format='plain', data_encode='json',
          format_parameters={'force_append_only': 'true'}) }}
select day, doubled from {{ ref('order_days') }}
