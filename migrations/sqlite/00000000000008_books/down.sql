DROP TABLE family_sums;

-- What rates lines were billed at comes back as far as they are one of a product on a document.
ALTER TABLE document_parts ADD COLUMN tax_rate TEXT NOT NULL DEFAULT '0';
ALTER TABLE document_parts ADD COLUMN discount_rate TEXT NOT NULL DEFAULT '0';
UPDATE document_parts SET tax_rate = l.tax_rate, discount_rate = l.discount_rate
    FROM document_lines l
    WHERE l.document_id = document_parts.document_id AND l.customer_id = document_parts.customer_id
        AND l.product_no = document_parts.product_no;
CREATE INDEX document_parts_void ON document_parts (customer_id, contract_id, product_no, period_start, slot) WHERE NOT active;

DROP INDEX document_lines_of_service_period;
ALTER TABLE document_lines DROP COLUMN bill_with;
ALTER TABLE document_lines DROP COLUMN billed_period_start;
ALTER TABLE document_lines DROP COLUMN discount_rate;
ALTER TABLE document_lines DROP COLUMN tax_rate;
CREATE INDEX document_lines_of_service_period ON document_lines (customer_id, contract_id, product_no, service_period_start);

ALTER TABLE documents DROP COLUMN discarded_content;
ALTER TABLE documents DROP COLUMN default_tax;
ALTER TABLE documents DROP COLUMN family_document_id;

CREATE TABLE usage_totals_old (
    customer_id       BLOB NOT NULL,
    contract_id       BLOB NOT NULL,
    product_no        INTEGER NOT NULL,
    -- The service period's first day, which names it.
    period_start      INTEGER NOT NULL,
    usage_product_ref TEXT NOT NULL,
    organization_id   BLOB NOT NULL,
    sum               TEXT NOT NULL,
    events            INTEGER NOT NULL,
    max               TEXT,
    latest_at         INTEGER,
    latest_event_id   BLOB,
    latest_quantity   TEXT,
    PRIMARY KEY (customer_id, contract_id, product_no, period_start, usage_product_ref),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    CHECK ((latest_at IS NULL) = (latest_event_id IS NULL) AND (latest_at IS NULL) = (latest_quantity IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO usage_totals_old (
    customer_id, contract_id, product_no, period_start, usage_product_ref, organization_id, sum, events, max, latest_at,
    latest_event_id, latest_quantity
)
    SELECT customer_id, contract_id, product_no, period_start, usage_product_ref, organization_id, sum, events, max, latest_at,
        latest_event_id, latest_quantity
    FROM usage_totals;
DROP TABLE usage_totals;
ALTER TABLE usage_totals_old RENAME TO usage_totals;
ALTER TABLE usage_event_revisions DROP COLUMN service_date;
ALTER TABLE usage_events DROP COLUMN service_date;

-- Of several segments of a version, the last stays.
CREATE TABLE contract_products_old (
    contract_id   BLOB NOT NULL,
    customer_id   BLOB NOT NULL,
    product_no    INTEGER NOT NULL,
    in_force_from INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    end_reason    TEXT CHECK (end_reason IN ('CANCELLED', 'REMOVED')),
    terms         TEXT,
    PRIMARY KEY (contract_id, customer_id, product_no, version),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    CHECK ((end_reason IS NULL) <> (terms IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO contract_products_old (contract_id, customer_id, product_no, in_force_from, version, end_reason, terms)
    SELECT contract_id, customer_id, product_no, in_force_from, version, end_reason, terms FROM contract_products s
    WHERE in_force_from = (
        SELECT max(o.in_force_from) FROM contract_products o
        WHERE o.contract_id = s.contract_id AND o.customer_id = s.customer_id AND o.product_no = s.product_no
            AND o.version = s.version
    );
DROP TABLE contract_products;
ALTER TABLE contract_products_old RENAME TO contract_products;
