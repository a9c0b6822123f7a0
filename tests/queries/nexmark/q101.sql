SELECT a.id AS auction_id, a.item_name, b.highest AS current_highest_bid
FROM auction AS a
LEFT JOIN (SELECT auction, max(price) AS highest FROM bid GROUP BY auction) AS b ON a.id = b.auction
