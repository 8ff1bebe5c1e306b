-- Books: which family a document belongs to, at which rates each line is billed, and what of discount and tax a family has billed.

-- One version may have several segments of a product, each from its date.
CREATE TABLE contract_products_new (
    contract_id   BLOB NOT NULL,
    customer_id   BLOB NOT NULL,
    product_no    INTEGER NOT NULL,
    in_force_from INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    end_reason    TEXT CHECK (end_reason IN ('CANCELLED', 'REMOVED')),
    terms         TEXT,
    PRIMARY KEY (contract_id, customer_id, product_no, version, in_force_from),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    CHECK ((end_reason IS NULL) <> (terms IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO contract_products_new (contract_id, customer_id, product_no, in_force_from, version, end_reason, terms)
    SELECT contract_id, customer_id, product_no, in_force_from, version, end_reason, terms FROM contract_products;
DROP TABLE contract_products;
ALTER TABLE contract_products_new RENAME TO contract_products;

-- The date an event counts on. It is stored from now on; what is there gets its date in UTC, within its service period.
-- Every insert says it: the default is for the rows that are there.
ALTER TABLE usage_events ADD COLUMN service_date INTEGER NOT NULL DEFAULT 0;
UPDATE usage_events SET service_date = max(
    service_start,
    min(service_end - 1, (occurred_at - ((occurred_at % 86400000000) + 86400000000) % 86400000000) / 86400000000)
);
ALTER TABLE usage_event_revisions ADD COLUMN service_date INTEGER NOT NULL DEFAULT 0;
UPDATE usage_event_revisions SET service_date = max(
    service_start,
    min(service_end - 1, (occurred_at - ((occurred_at % 86400000000) + 86400000000) % 86400000000) / 86400000000)
);

CREATE TABLE usage_totals_new (
    customer_id         BLOB NOT NULL,
    contract_id         BLOB NOT NULL,
    product_no          INTEGER NOT NULL,
    -- The service period's first day, which names it.
    period_start        INTEGER NOT NULL,
    usage_product_ref   TEXT NOT NULL,
    organization_id     BLOB NOT NULL,
    sum                 TEXT NOT NULL,
    events              INTEGER NOT NULL,
    -- NULL with events: only counting them again tells.
    max                 TEXT,
    -- Likewise.
    latest_at           INTEGER,
    latest_service_date INTEGER,
    latest_event_id     BLOB,
    latest_quantity     TEXT,
    PRIMARY KEY (customer_id, contract_id, product_no, period_start, usage_product_ref),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    CHECK ((latest_at IS NULL) = (latest_event_id IS NULL) AND (latest_at IS NULL) = (latest_quantity IS NULL)
        AND (latest_at IS NULL) = (latest_service_date IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO usage_totals_new (
    customer_id, contract_id, product_no, period_start, usage_product_ref, organization_id, sum, events, max, latest_at,
    latest_service_date, latest_event_id, latest_quantity
)
    SELECT t.customer_id, t.contract_id, t.product_no, t.period_start, t.usage_product_ref, t.organization_id, t.sum, t.events, t.max,
        t.latest_at,
        CASE WHEN t.latest_at IS NOT NULL THEN coalesce(
            (SELECT e.service_date FROM usage_events e WHERE e.event_id = t.latest_event_id AND e.customer_id = t.customer_id),
            max(t.period_start, (t.latest_at - ((t.latest_at % 86400000000) + 86400000000) % 86400000000) / 86400000000)
        ) END,
        t.latest_event_id, t.latest_quantity
    FROM usage_totals t;
DROP TABLE usage_totals;
ALTER TABLE usage_totals_new RENAME TO usage_totals;

-- The invoice without a parent that a document's parents lead to, or itself. Every insert says it: SQLite adds no column that must
-- have a value without a default, and `documents` can't be made anew under the tables that refer to it.
ALTER TABLE documents ADD COLUMN family_document_id BLOB NOT NULL DEFAULT x'';
UPDATE documents SET family_document_id = document_id;
WITH RECURSIVE led (document_id, customer_id, family_document_id) AS (
    SELECT document_id, customer_id, document_id FROM documents WHERE parent_document_id IS NULL
    UNION ALL
    SELECT d.document_id, d.customer_id, led.family_document_id
        FROM led JOIN documents d ON d.customer_id = led.customer_id AND d.parent_document_id = led.document_id
)
UPDATE documents SET family_document_id = led.family_document_id
    FROM led WHERE documents.document_id = led.document_id AND documents.customer_id = led.customer_id;

-- The customer's default tax that a family keeps, on its invoice: NULL until its first document is issued, '' where there was none.
ALTER TABLE documents ADD COLUMN default_tax TEXT;
UPDATE documents SET default_tax = (
    SELECT p.tax_rate FROM document_parts p
        WHERE p.document_id = documents.document_id AND p.customer_id = documents.customer_id ORDER BY p.position LIMIT 1
)
    WHERE family_document_id = document_id AND (customer_id, document_id) IN (
        SELECT customer_id, family_document_id FROM documents WHERE issue_date IS NOT NULL
    );

-- What a draft said when it was put out of force; NULL where that wasn't kept.
ALTER TABLE documents ADD COLUMN discarded_content TEXT;

-- What each line bills, with what and at which rates. Those of issued documents are frozen: their triggers go with the old table.
CREATE TABLE document_lines_new (
    document_id          BLOB NOT NULL,
    customer_id          BLOB NOT NULL,
    ordinal              INTEGER NOT NULL,
    contract_id          BLOB NOT NULL,
    product_no           INTEGER NOT NULL,
    -- NULL: the true-up to the pricing's minimum fee.
    line_item_id         TEXT,
    bill_with            TEXT NOT NULL CHECK (bill_with IN ('FIXED', 'USAGE')),
    -- The first day of the service period whose price it is part of.
    billed_period_start  INTEGER NOT NULL,
    discount_rate        TEXT NOT NULL,
    tax_rate             TEXT NOT NULL,
    usage_product_ref    TEXT,
    -- The days shown.
    service_period_start INTEGER NOT NULL,
    service_period_end   INTEGER NOT NULL,
    quantity             TEXT,
    amount_minor         INTEGER NOT NULL,
    PRIMARY KEY (document_id, customer_id, ordinal),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
INSERT INTO document_lines_new (
    document_id, customer_id, ordinal, contract_id, product_no, line_item_id, bill_with, billed_period_start, discount_rate, tax_rate,
    usage_product_ref, service_period_start, service_period_end, quantity, amount_minor
)
    SELECT l.document_id, l.customer_id, l.ordinal, l.contract_id, l.product_no, l.line_item_id,
        CASE
            WHEN l.line_item_id IS NOT NULL AND l.usage_product_ref IS NULL THEN 'FIXED'
            -- What is prepaid of usage: it stands on the invoice of its own period, which bills none in arrears.
            WHEN l.usage_product_ref IS NOT NULL AND d.purpose = 'REGULAR' AND d.slot = 'PERIOD'
                AND l.service_period_start = d.period_start
                AND EXISTS (
                    SELECT 1 FROM contract_products s
                    WHERE s.contract_id = l.contract_id AND s.customer_id = l.customer_id AND s.product_no = l.product_no
                        AND json_extract(s.terms, '$.payment_time') = 'BEFORE_USE'
                )
                THEN 'FIXED'
            ELSE 'USAGE'
        END,
        l.service_period_start, coalesce(p.discount_rate, '0'), coalesce(p.tax_rate, '0'),
        l.usage_product_ref, l.service_period_start, l.service_period_end, l.quantity, l.amount_minor
    FROM document_lines l
        JOIN documents d ON d.document_id = l.document_id AND d.customer_id = l.customer_id
        LEFT JOIN document_parts p
            ON p.document_id = l.document_id AND p.customer_id = l.customer_id AND p.product_no = l.product_no;
DROP TABLE document_lines;
ALTER TABLE document_lines_new RENAME TO document_lines;
CREATE INDEX document_lines_of_service_period ON document_lines (customer_id, contract_id, product_no, billed_period_start);
CREATE TRIGGER document_lines_frozen_insert BEFORE INSERT ON document_lines
WHEN EXISTS (SELECT 1 FROM issued_documents WHERE document_id = NEW.document_id AND customer_id = NEW.customer_id)
BEGIN
    SELECT RAISE(ABORT, 'lines of issued documents never change');
END;
CREATE TRIGGER document_lines_frozen_update BEFORE UPDATE ON document_lines
WHEN EXISTS (SELECT 1 FROM issued_documents WHERE document_id = OLD.document_id AND customer_id = OLD.customer_id)
BEGIN
    SELECT RAISE(ABORT, 'lines of issued documents never change');
END;
CREATE TRIGGER document_lines_frozen_delete BEFORE DELETE ON document_lines
WHEN EXISTS (SELECT 1 FROM issued_documents WHERE document_id = OLD.document_id AND customer_id = OLD.customer_id)
BEGIN
    SELECT RAISE(ABORT, 'lines of issued documents never change');
END;

-- Rates are of lines. What a new document replaces follows from its contract's book.
ALTER TABLE document_parts DROP COLUMN tax_rate;
ALTER TABLE document_parts DROP COLUMN discount_rate;
DROP INDEX document_parts_void;

-- What the issued documents of a family bill of discount and tax, with what that is of. Credits count against.
CREATE TABLE family_sums (
    customer_id        BLOB NOT NULL,
    family_document_id BLOB NOT NULL,
    -- Of the discount at a pair of rates. Of tax −1, because a key has no NULL.
    product_no         INTEGER NOT NULL,
    -- A decimal without zeros at its end, so that equal rates are one key. Of tax ''.
    discount_rate      TEXT NOT NULL,
    -- Likewise a decimal.
    tax_rate           TEXT NOT NULL,
    organization_id    BLOB NOT NULL,
    base_minor         INTEGER NOT NULL,
    amount_minor       INTEGER NOT NULL,
    PRIMARY KEY (customer_id, family_document_id, product_no, discount_rate, tax_rate),
    FOREIGN KEY (family_document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
WITH issued AS (
    SELECT d.customer_id, d.family_document_id, d.organization_id, CASE d.kind WHEN 'CREDIT' THEN -1 ELSE 1 END AS sign, i.content
        FROM issued_documents i JOIN documents d ON d.document_id = i.document_id AND d.customer_id = i.customer_id
        WHERE d.lifecycle IN ('ISSUED', 'UNCOLLECTIBLE')
), said AS (
    SELECT i.customer_id, i.family_document_id, i.organization_id, i.sign,
            json_extract(p.value, '$.product_no') AS product_no, json_extract(p.value, '$.discount_rate') AS discount_rate,
            json_extract(p.value, '$.tax_rate') AS tax_rate, json_extract(p.value, '$.sub_total') AS base,
            json_extract(p.value, '$.discount') AS amount
        FROM issued i, json_each(i.content, '$.issued.content.products') p
    UNION ALL
    SELECT i.customer_id, i.family_document_id, i.organization_id, i.sign,
            -1, '', json_extract(t.value, '$.rate'), json_extract(t.value, '$.base'), json_extract(t.value, '$.amount')
        FROM issued i, json_each(i.content, '$.issued.content.taxes') t
)
INSERT INTO family_sums (
    customer_id, family_document_id, product_no, discount_rate, tax_rate, organization_id, base_minor, amount_minor
)
    SELECT customer_id, family_document_id, product_no,
        CASE WHEN instr(discount_rate, '.') > 0 THEN rtrim(rtrim(discount_rate, '0'), '.') ELSE discount_rate END,
        CASE WHEN instr(tax_rate, '.') > 0 THEN rtrim(rtrim(tax_rate, '0'), '.') ELSE tax_rate END,
        organization_id,
        -- `30.86 EUR`, with the digits that the currency has.
        sum(sign * CAST(replace(substr(base, 1, instr(base, ' ') - 1), '.', '') AS INTEGER)),
        sum(sign * CAST(replace(substr(amount, 1, instr(amount, ' ') - 1), '.', '') AS INTEGER))
    FROM said
    GROUP BY 1, 2, 3, 4, 5, 6;
