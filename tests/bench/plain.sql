-- The tables of plain.py, with as many customers as `customers` says; pgbench's smallest transaction uses them, too.
CREATE TABLE contracts (
    contract_id bigint PRIMARY KEY,
    customer_ref text NOT NULL,
    usage_product_ref text NOT NULL,
    unit_price numeric NOT NULL,
    UNIQUE (customer_ref, usage_product_ref)
);
CREATE TABLE invoices (
    invoice_id bigint PRIMARY KEY,
    contract_id bigint NOT NULL REFERENCES contracts,
    number text NOT NULL UNIQUE,
    period_start timestamptz NOT NULL,
    period_end timestamptz NOT NULL,
    total numeric NOT NULL,
    UNIQUE (contract_id, period_start)
);
CREATE TABLE lines (
    invoice_id bigint PRIMARY KEY REFERENCES invoices,
    quantity numeric NOT NULL,
    amount numeric NOT NULL
);
CREATE TABLE events (
    event_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    invoice_id bigint NOT NULL REFERENCES invoices,
    occurred_at timestamptz NOT NULL,
    quantity numeric NOT NULL CHECK (quantity >= 0)
);
INSERT INTO contracts SELECT n, 'c-' || n, 'api-calls', 0.05 FROM generate_series(0, :customers - 1) n;
INSERT INTO invoices SELECT n, n, 'INV-' || n, now() - interval '10 days', now() + interval '20 days', 0
    FROM generate_series(0, :customers - 1) n;
INSERT INTO lines SELECT n, 0, 0 FROM generate_series(0, :customers - 1) n;
VACUUM ANALYZE;
