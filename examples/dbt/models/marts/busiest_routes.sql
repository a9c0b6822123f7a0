select origin, dest, flights from {{ ref('routes') }} order by flights desc limit 5
