CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT, cents INTEGER);
INSERT INTO orders VALUES (1001, 'lamp', 2900), (1002, 'fern', 1200);
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, level TEXT);
INSERT INTO customers VALUES (7, 'Ada', 'gold'), (8, 'Linus', 'standard');
