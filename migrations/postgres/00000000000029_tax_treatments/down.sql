ALTER TABLE family_sums DROP CONSTRAINT family_sums_pkey;
-- What one rate has of several treatments is one sum again.
UPDATE family_sums s SET base_minor = summed.base_minor, amount_minor = summed.amount_minor
    FROM (
        SELECT customer_id, family_document_id, product_no, discount_rate, tax_rate, min(tax_basis) AS tax_basis,
                sum(base_minor)::bigint AS base_minor, sum(amount_minor)::bigint AS amount_minor
            FROM family_sums GROUP BY 1, 2, 3, 4, 5
    ) summed
    WHERE summed.customer_id = s.customer_id AND summed.family_document_id = s.family_document_id
        AND summed.product_no = s.product_no AND summed.discount_rate = s.discount_rate AND summed.tax_rate = s.tax_rate
        AND summed.tax_basis = s.tax_basis;
DELETE FROM family_sums s USING family_sums o
    WHERE o.customer_id = s.customer_id AND o.family_document_id = s.family_document_id AND o.product_no = s.product_no
        AND o.discount_rate = s.discount_rate AND o.tax_rate = s.tax_rate AND o.tax_basis < s.tax_basis;
ALTER TABLE family_sums
    DROP COLUMN tax_basis,
    ADD PRIMARY KEY (customer_id, family_document_id, product_no, discount_rate, tax_rate);

ALTER TABLE document_lines
    DROP COLUMN has_default_tax,
    DROP COLUMN tax_basis;

-- The newest default is the one that holds.
ALTER TABLE customers ADD COLUMN tax NUMERIC;
UPDATE customers SET
    tax = (taxes -> -1 ->> 'rate')::numeric,
    legal = CASE
        WHEN taxes -> -1 -> 'basis' IS NULL THEN legal
        ELSE jsonb_set(coalesce(legal::jsonb, '{}'), '{treatment}', (taxes -> -1 -> 'basis')::jsonb)::json
    END
    WHERE taxes IS NOT NULL;
ALTER TABLE customers DROP COLUMN taxes;
UPDATE entities SET legal = jsonb_set(coalesce(legal::jsonb, '{}'), '{treatment}', (taxes -> -1 -> 'basis')::jsonb)::json
    WHERE taxes -> -1 -> 'basis' IS NOT NULL;
ALTER TABLE entities DROP COLUMN taxes;

ALTER TABLE documents ADD COLUMN default_tax TEXT;
UPDATE documents SET default_tax = coalesce(
    (SELECT c.tax::text FROM customers c WHERE c.customer_id = documents.customer_id), ''
)
    WHERE family_document_id = document_id AND (customer_id, document_id) IN (
        SELECT customer_id, family_document_id FROM documents WHERE issue_date IS NOT NULL
    );
