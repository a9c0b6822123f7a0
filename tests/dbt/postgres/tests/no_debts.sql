select * from {{ ref('staged') }} where balance < 0
