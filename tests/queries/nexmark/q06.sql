SELECT
    q.seller,
    q.id AS auction,
    avg(q.final) OVER (
        PARTITION BY q.seller ORDER BY q.date_time, q.id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW
    ) AS average
FROM (
    SELECT a.seller, a.id, b.price AS final, b.date_time,
        row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS place
    FROM auction AS a JOIN bid AS b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
) AS q
WHERE q.place <= 1
