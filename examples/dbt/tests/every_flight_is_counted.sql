-- Views follow their tables by themselves, so this holds whenever it is asked, without another run of dbt.
select flights, counted
from (select count(*) as flights from {{ source('new_york', 'flights') }}) f
cross join (select sum(flights) as counted from {{ ref('airline_delays') }}) c
where flights <> counted
