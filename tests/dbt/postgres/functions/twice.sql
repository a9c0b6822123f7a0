select x * 2
