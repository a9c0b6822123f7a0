SELECT q.category, avg(q.final) AS average
FROM (
    SELECT a.category, max(b.price) AS final
    FROM auction AS a, bid AS b
    WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
    GROUP BY a.id, a.category
) AS q
GROUP BY q.category
