SELECT a.id AS auction_id, a.item_name, count(b.auction) AS bid_count
FROM auction AS a JOIN bid AS b ON a.id = b.auction
GROUP BY a.id, a.item_name
ORDER BY bid_count DESC, auction_id
LIMIT 100
