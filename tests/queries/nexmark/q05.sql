SELECT counted.auction, counted.num
FROM (
    SELECT auction, count(*) AS num, window_start
    FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
    GROUP BY auction, window_start
) AS counted
JOIN (
    SELECT max(num) AS most, window_start
    FROM (
        SELECT count(*) AS num, window_start
        FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
        GROUP BY auction, window_start
    ) AS counts
    GROUP BY window_start
) AS largest
ON counted.window_start = largest.window_start AND counted.num = largest.most
