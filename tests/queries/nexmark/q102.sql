SELECT a.id AS auction_id, a.item_name, count(b.auction) AS bid_count
FROM auction AS a JOIN bid AS b ON a.id = b.auction
GROUP BY a.id, a.item_name
HAVING count(b.auction) >= (SELECT count(*) / count(DISTINCT auction) FROM bid)
