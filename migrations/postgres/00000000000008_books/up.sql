-- Books: which family a document belongs to, at which rates each line is billed, and what of discount and tax a family has billed.

-- One version may have several segments of a product, each from its date.
ALTER TABLE contract_products
    DROP CONSTRAINT contract_products_pkey,
    ADD PRIMARY KEY (contract_id, customer_id, product_no, version, in_force_from);

-- The date an event counts on. It is stored from now on; what is there gets its date in UTC, within its service period.
ALTER TABLE usage_events ADD COLUMN service_date DATE;
UPDATE usage_events
    SET service_date = greatest(service_start, least(service_end - 1, (occurred_at AT TIME ZONE 'UTC')::date));
ALTER TABLE usage_events ALTER COLUMN service_date SET NOT NULL;
ALTER TABLE usage_event_revisions ADD COLUMN service_date DATE;
UPDATE usage_event_revisions
    SET service_date = greatest(service_start, least(service_end - 1, (occurred_at AT TIME ZONE 'UTC')::date));
ALTER TABLE usage_event_revisions ALTER COLUMN service_date SET NOT NULL;

-- `max` and what is of the latest are NULL with events, too, where only counting them again tells.
ALTER TABLE usage_totals ADD COLUMN latest_service_date DATE;
UPDATE usage_totals t SET latest_service_date = coalesce(
    (SELECT e.service_date FROM usage_events e WHERE e.event_id = t.latest_event_id AND e.customer_id = t.customer_id),
    greatest(t.period_start, (t.latest_at AT TIME ZONE 'UTC')::date)
)
    WHERE t.latest_at IS NOT NULL;
ALTER TABLE usage_totals
    DROP CONSTRAINT usage_totals_check,
    ADD CHECK ((latest_at IS NULL) = (latest_event_id IS NULL) AND (latest_at IS NULL) = (latest_quantity IS NULL)
        AND (latest_at IS NULL) = (latest_service_date IS NULL));

-- The invoice without a parent that a document's parents lead to, or itself.
ALTER TABLE documents ADD COLUMN family_document_id UUID;
UPDATE documents SET family_document_id = document_id;
WITH RECURSIVE led (document_id, customer_id, family_document_id) AS (
    SELECT document_id, customer_id, document_id FROM documents WHERE parent_document_id IS NULL
    UNION ALL
    SELECT d.document_id, d.customer_id, led.family_document_id
        FROM led JOIN documents d ON d.customer_id = led.customer_id AND d.parent_document_id = led.document_id
)
UPDATE documents SET family_document_id = led.family_document_id
    FROM led WHERE documents.document_id = led.document_id AND documents.customer_id = led.customer_id;
ALTER TABLE documents ALTER COLUMN family_document_id SET NOT NULL;

-- The customer's default tax that a family keeps, on its invoice: NULL until its first document is issued, '' where there was none.
ALTER TABLE documents ADD COLUMN default_tax TEXT;
UPDATE documents SET default_tax = (
    SELECT p.tax_rate::text FROM document_parts p
        WHERE p.document_id = documents.document_id AND p.customer_id = documents.customer_id ORDER BY p.position LIMIT 1
)
    WHERE family_document_id = document_id AND (customer_id, document_id) IN (
        SELECT customer_id, family_document_id FROM documents WHERE issue_date IS NOT NULL
    );

-- What a draft said when it was put out of force; NULL where that wasn't kept.
ALTER TABLE documents ADD COLUMN discarded_content JSON;

-- What each line bills, with what and at which rates. Those of issued documents are frozen but for this.
DROP TRIGGER document_lines_frozen ON document_lines;
ALTER TABLE document_lines
    ADD COLUMN bill_with TEXT CHECK (bill_with IN ('FIXED', 'USAGE')),
    -- The first day of the service period whose price it is part of.
    ADD COLUMN billed_period_start DATE,
    ADD COLUMN discount_rate NUMERIC NOT NULL DEFAULT 0,
    ADD COLUMN tax_rate NUMERIC NOT NULL DEFAULT 0;
UPDATE document_lines l SET
    bill_with = CASE
        WHEN l.line_item_id IS NOT NULL AND l.usage_product_ref IS NULL THEN 'FIXED'
        -- What is prepaid of usage: it stands on the invoice of its own period, which bills none in arrears.
        WHEN l.usage_product_ref IS NOT NULL AND d.purpose = 'REGULAR' AND d.slot = 'PERIOD'
            AND l.service_period_start = d.period_start
            AND EXISTS (
                SELECT 1 FROM contract_products s
                WHERE s.contract_id = l.contract_id AND s.customer_id = l.customer_id AND s.product_no = l.product_no
                    AND s.terms ->> 'payment_time' = 'BEFORE_USE'
            )
            THEN 'FIXED'
        ELSE 'USAGE'
    END,
    billed_period_start = l.service_period_start
    FROM documents d WHERE d.document_id = l.document_id AND d.customer_id = l.customer_id;
UPDATE document_lines l SET discount_rate = p.discount_rate, tax_rate = p.tax_rate
    FROM document_parts p
    WHERE p.document_id = l.document_id AND p.customer_id = l.customer_id AND p.product_no = l.product_no;
ALTER TABLE document_lines
    ALTER COLUMN bill_with SET NOT NULL,
    ALTER COLUMN billed_period_start SET NOT NULL,
    ALTER COLUMN discount_rate DROP DEFAULT,
    ALTER COLUMN tax_rate DROP DEFAULT;
DROP INDEX document_lines_of_service_period;
CREATE INDEX document_lines_of_service_period ON document_lines (customer_id, contract_id, product_no, billed_period_start);
CREATE TRIGGER document_lines_frozen BEFORE INSERT OR UPDATE OR DELETE ON document_lines
    FOR EACH ROW EXECUTE FUNCTION refuse_change_of_issued_lines();

-- Rates are of lines. What a new document replaces follows from its contract's book.
ALTER TABLE document_parts
    DROP COLUMN tax_rate,
    DROP COLUMN discount_rate;
DROP INDEX document_parts_void;

-- What the issued documents of a family bill of discount and tax, with what that is of. Credits count against.
CREATE TABLE family_sums (
    customer_id        UUID NOT NULL,
    family_document_id UUID NOT NULL,
    -- Of the discount at a pair of rates. Of tax −1, because a key has no NULL.
    product_no         INTEGER NOT NULL,
    -- A decimal without zeros at its end, so that equal rates are one key. Of tax ''.
    discount_rate      TEXT COLLATE "C" NOT NULL,
    -- Likewise a decimal.
    tax_rate           TEXT COLLATE "C" NOT NULL,
    organization_id    UUID NOT NULL,
    base_minor         BIGINT NOT NULL,
    amount_minor       BIGINT NOT NULL,
    PRIMARY KEY (customer_id, family_document_id, product_no, discount_rate, tax_rate),
    FOREIGN KEY (family_document_id, customer_id) REFERENCES documents (document_id, customer_id)
);
WITH issued AS (
    SELECT d.customer_id, d.family_document_id, d.organization_id, CASE d.kind WHEN 'CREDIT' THEN -1 ELSE 1 END AS sign,
            i.content -> 'issued' -> 'content' AS content
        FROM issued_documents i JOIN documents d ON d.document_id = i.document_id AND d.customer_id = i.customer_id
        WHERE d.lifecycle IN ('ISSUED', 'UNCOLLECTIBLE')
), said AS (
    SELECT i.customer_id, i.family_document_id, i.organization_id, i.sign,
            (p ->> 'product_no')::integer AS product_no, p ->> 'discount_rate' AS discount_rate,
            p ->> 'tax_rate' AS tax_rate, p ->> 'sub_total' AS base, p ->> 'discount' AS amount
        FROM issued i, json_array_elements(i.content -> 'products') p
    UNION ALL
    SELECT i.customer_id, i.family_document_id, i.organization_id, i.sign,
            -1, '', t ->> 'rate', t ->> 'base', t ->> 'amount'
        FROM issued i, json_array_elements(i.content -> 'taxes') t
)
INSERT INTO family_sums (
    customer_id, family_document_id, product_no, discount_rate, tax_rate, organization_id, base_minor, amount_minor
)
    SELECT customer_id, family_document_id, product_no,
        CASE WHEN position('.' IN discount_rate) > 0 THEN rtrim(rtrim(discount_rate, '0'), '.') ELSE discount_rate END,
        CASE WHEN position('.' IN tax_rate) > 0 THEN rtrim(rtrim(tax_rate, '0'), '.') ELSE tax_rate END,
        organization_id,
        -- `30.86 EUR`, with the digits that the currency has.
        sum(sign * replace(split_part(base, ' ', 1), '.', '')::bigint)::bigint,
        sum(sign * replace(split_part(amount, ' ', 1), '.', '')::bigint)::bigint
    FROM said
    GROUP BY 1, 2, 3, 4, 5, 6;
