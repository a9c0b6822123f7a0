{{ config(materialized='sink', connector='blackhole',
          connector_parameters={'type': 'append-only', 'force_append_only': 'true'}) }}
{{ ref('even') }}
