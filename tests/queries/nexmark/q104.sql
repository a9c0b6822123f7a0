SELECT a.id AS auction_id, a.item_name
FROM auction AS a
WHERE a.id NOT IN (SELECT auction FROM bid GROUP BY auction HAVING count(*) < 20)
