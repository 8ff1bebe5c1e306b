-- The least that an event can take on PostgreSQL: select the match, update the total, insert the event.
\set n random(0, :contracts - 1)
BEGIN;
SELECT i.invoice_id, c.unit_price FROM contracts c JOIN invoices i USING (contract_id)
    WHERE c.customer_ref = 'c-' || :n::text AND c.usage_product_ref = 'api-calls'
    AND i.period_start <= now() AND now() < i.period_end \gset
UPDATE lines SET quantity = quantity + 1.25, amount = round((quantity + 1.25) * :unit_price::numeric, 2)
    WHERE invoice_id = :invoice_id::bigint;
INSERT INTO events (invoice_id, occurred_at, quantity) VALUES (:invoice_id::bigint, now(), 1.25);
COMMIT;
