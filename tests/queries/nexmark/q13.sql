SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid AS b JOIN side_input FOR SYSTEM_TIME AS OF PROCTIME() AS s ON b.auction % 50 = s.key
