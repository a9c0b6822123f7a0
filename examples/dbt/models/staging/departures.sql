select time_hour, month, carrier, flight, origin, dest, dep_delay, arr_delay, arr_delay is null as is_lost
from {{ source('new_york', 'flights') }}
