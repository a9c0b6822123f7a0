{{ config(materialized='table_with_connector', indexes=[{'columns': ['amount'], 'include': ['id']}],
          grants={'select': ['reader']}) }}
create table {{ this }} (id int primary key, amount numeric, at timestamp) with (
  connector = 'posix_fs', posix_fs.root = '{{ env_var("CHECKS_FILES") }}/in', match_pattern = '*.csv'
) format plain encode csv (without_header = 'false', delimiter = ',')
