SELECT bidder, count(*) AS bid_count, start_time, end_time
FROM (
    SELECT bidder, first_value(date_time) OVER w AS start_time, last_value(date_time) OVER w AS end_time
    FROM bid
    WINDOW w AS (PARTITION BY bidder ORDER BY date_time SESSION WITH GAP INTERVAL '10' SECOND)
) AS sessions
GROUP BY bidder, start_time, end_time
