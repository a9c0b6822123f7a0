SELECT auction, bidder, price, date_time, to_char(date_time, 'YYYY-MM-DD') AS day, to_char(date_time, 'HH24:MI') AS minute
FROM bid
