DROP TABLE family_sums;

-- What rates lines were billed at comes back as far as they are one of a product on a document.
ALTER TABLE document_parts
    ADD COLUMN tax_rate NUMERIC NOT NULL DEFAULT 0,
    ADD COLUMN discount_rate NUMERIC NOT NULL DEFAULT 0;
UPDATE document_parts p SET tax_rate = l.tax_rate, discount_rate = l.discount_rate
    FROM document_lines l
    WHERE l.document_id = p.document_id AND l.customer_id = p.customer_id AND l.product_no = p.product_no;
ALTER TABLE document_parts
    ALTER COLUMN tax_rate DROP DEFAULT,
    ALTER COLUMN discount_rate DROP DEFAULT;
CREATE INDEX document_parts_void ON document_parts (customer_id, contract_id, product_no, period_start, slot) WHERE NOT active;

DROP INDEX document_lines_of_service_period;
ALTER TABLE document_lines
    DROP COLUMN bill_with,
    DROP COLUMN billed_period_start,
    DROP COLUMN discount_rate,
    DROP COLUMN tax_rate;
CREATE INDEX document_lines_of_service_period ON document_lines (customer_id, contract_id, product_no, service_period_start);

ALTER TABLE documents
    DROP COLUMN discarded_content,
    DROP COLUMN default_tax,
    DROP COLUMN family_document_id;

-- The check of what comes together goes with the column that is part of it.
ALTER TABLE usage_totals DROP COLUMN latest_service_date;
ALTER TABLE usage_totals ADD CONSTRAINT usage_totals_check
    CHECK ((latest_at IS NULL) = (latest_event_id IS NULL) AND (latest_at IS NULL) = (latest_quantity IS NULL));
ALTER TABLE usage_event_revisions DROP COLUMN service_date;
ALTER TABLE usage_events DROP COLUMN service_date;

-- Of several segments of a version, the last stays.
DELETE FROM contract_products s USING contract_products o
    WHERE o.contract_id = s.contract_id AND o.customer_id = s.customer_id AND o.product_no = s.product_no
        AND o.version = s.version AND o.in_force_from > s.in_force_from;
ALTER TABLE contract_products
    DROP CONSTRAINT contract_products_pkey,
    ADD PRIMARY KEY (contract_id, customer_id, product_no, version);
