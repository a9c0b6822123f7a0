SELECT
    id, item_name, description, initial_bid, reserve, opened, expires, seller, category,
    auction, bidder, price, bid_at
FROM (
    SELECT a.id, a.item_name, a.description, a.initial_bid, a.reserve, a.date_time AS opened, a.expires,
        a.seller, a.category, b.auction, b.bidder, b.price, b.date_time AS bid_at,
        row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS place
    FROM auction AS a JOIN bid AS b ON a.id = b.auction
    WHERE b.date_time BETWEEN a.date_time AND a.expires
) AS ranked
WHERE place <= 1
