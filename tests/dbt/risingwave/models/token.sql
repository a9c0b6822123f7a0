{{ config(materialized='secret') }}
create secret {{ this }} with (backend = 'meta') as 'hush'
