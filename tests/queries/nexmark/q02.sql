SELECT auction, price
FROM bid
WHERE auction % 123 = 0 OR auction IN (1007, 1020, 2001, 2019, 2087)
