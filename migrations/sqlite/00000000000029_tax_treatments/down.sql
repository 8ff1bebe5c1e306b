CREATE TABLE family_sums_old (
    customer_id        BLOB NOT NULL,
    family_document_id BLOB NOT NULL,
    product_no         INTEGER NOT NULL,
    discount_rate      TEXT NOT NULL,
    tax_rate           TEXT NOT NULL,
    organization_id    BLOB NOT NULL,
    base_minor         INTEGER NOT NULL,
    amount_minor       INTEGER NOT NULL,
    PRIMARY KEY (customer_id, family_document_id, product_no, discount_rate, tax_rate),
    FOREIGN KEY (family_document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
INSERT INTO family_sums_old (
    customer_id, family_document_id, product_no, discount_rate, tax_rate, organization_id, base_minor, amount_minor
)
    SELECT customer_id, family_document_id, product_no, discount_rate, tax_rate, organization_id, sum(base_minor), sum(amount_minor)
    FROM family_sums GROUP BY 1, 2, 3, 4, 5, 6;
DROP TABLE family_sums;
ALTER TABLE family_sums_old RENAME TO family_sums;

ALTER TABLE document_lines DROP COLUMN has_default_tax;
ALTER TABLE document_lines DROP COLUMN tax_basis;

-- The newest default is the one that holds.
ALTER TABLE customers ADD COLUMN tax TEXT;
UPDATE customers SET
    tax = json_extract(taxes, '$[#-1].rate'),
    legal = CASE
        WHEN json_extract(taxes, '$[#-1].basis') IS NULL THEN legal
        ELSE json_set(coalesce(legal, '{}'), '$.treatment', json(json_extract(taxes, '$[#-1].basis')))
    END
    WHERE taxes IS NOT NULL;
ALTER TABLE customers DROP COLUMN taxes;
UPDATE entities SET legal = json_set(coalesce(legal, '{}'), '$.treatment', json(json_extract(taxes, '$[#-1].basis')))
    WHERE json_extract(taxes, '$[#-1].basis') IS NOT NULL;
ALTER TABLE entities DROP COLUMN taxes;

ALTER TABLE documents ADD COLUMN default_tax TEXT;
UPDATE documents SET default_tax = coalesce(
    (SELECT c.tax FROM customers c WHERE c.customer_id = documents.customer_id), ''
)
    WHERE family_document_id = document_id AND (customer_id, document_id) IN (
        SELECT customer_id, family_document_id FROM documents WHERE issue_date IS NOT NULL
    );
