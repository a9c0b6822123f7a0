SELECT b.auction, b.price, b.bidder, b.date_time
FROM bid AS b
JOIN (
    SELECT max(price) AS highest, window_end
    FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND)
    GROUP BY window_end
) AS w
ON b.price = w.highest
WHERE b.date_time BETWEEN w.window_end - INTERVAL '10' SECOND AND w.window_end
