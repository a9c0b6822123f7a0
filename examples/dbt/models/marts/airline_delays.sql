{{ config(zero_downtime={'enabled': true, 'immediate_cleanup': true}) }}
select a.name as airline, s.season, count(*) as flights, sum(case when d.is_lost then 1 else 0 end) as lost,
       max(d.arr_delay) as worst_delay
from {{ ref('departures') }} d
join {{ source('new_york', 'airlines') }} a on a.carrier = d.carrier
join {{ ref('seasons') }} s on s.month = d.month
group by a.name, s.season
