-- A tax treatment is rate, category and reason, as one value, and default taxes hold from a day on.

-- The default taxes of customers and entities, oldest first; NULL: nothing is said. What was said holds since the beginning.
ALTER TABLE customers ADD COLUMN taxes TEXT;
UPDATE customers
    SET taxes = json_array(json_patch('{}', json_object('rate', tax, 'basis', json(json_extract(legal, '$.treatment')))))
    WHERE tax IS NOT NULL OR json_extract(legal, '$.treatment') IS NOT NULL;
UPDATE customers SET legal = nullif(json_remove(legal, '$.treatment'), '{}') WHERE json_extract(legal, '$.treatment') IS NOT NULL;
ALTER TABLE customers DROP COLUMN tax;
ALTER TABLE entities ADD COLUMN taxes TEXT;
UPDATE entities
    SET taxes = json_array(json_object('basis', json(json_extract(legal, '$.treatment'))))
    WHERE json_extract(legal, '$.treatment') IS NOT NULL;
UPDATE entities SET legal = nullif(json_remove(legal, '$.treatment'), '{}') WHERE json_extract(legal, '$.treatment') IS NOT NULL;

-- Each line says at which default it was billed: a family keeps none.
ALTER TABLE documents DROP COLUMN default_tax;

-- Every insert says both: the defaults are for the rows that are there.
DROP TRIGGER document_lines_frozen_update;
-- Category and reason as JSON; '' where neither is known.
ALTER TABLE document_lines ADD COLUMN tax_basis TEXT NOT NULL DEFAULT '';
-- Whether the tax follows a default of the customer or the entity.
ALTER TABLE document_lines ADD COLUMN has_default_tax INTEGER NOT NULL DEFAULT FALSE CHECK (has_default_tax IN (FALSE, TRUE));
UPDATE document_lines SET tax_basis = '{"category":"S"}' WHERE CAST(tax_rate AS REAL) <> 0;
-- What isn't taxed: as its document says.
WITH said AS (
    SELECT i.document_id, i.customer_id, json_extract(p.value, '$.treatment') AS tax_basis,
            row_number() OVER (PARTITION BY i.document_id, i.customer_id ORDER BY p.key, l.key) - 1 AS ordinal
        FROM issued_documents i, json_each(i.content, '$.issued.content.products') p, json_each(p.value, '$.lines') l
        WHERE (i.document_id, i.customer_id) IN (
            SELECT document_id, customer_id FROM document_lines WHERE frozen AND tax_basis = ''
        )
)
UPDATE document_lines SET tax_basis = said.tax_basis
    FROM said
    WHERE said.document_id = document_lines.document_id AND said.customer_id = document_lines.customer_id
        AND said.ordinal = document_lines.ordinal AND said.tax_basis IS NOT NULL AND document_lines.tax_basis = '';
-- On an open adjustment: as its family was billed, for the same period first.
UPDATE document_lines SET tax_basis = coalesce((
    SELECT o.tax_basis
        FROM document_lines o
            JOIN documents issued ON issued.document_id = o.document_id AND issued.customer_id = o.customer_id
            JOIN documents open ON open.document_id = document_lines.document_id AND open.customer_id = document_lines.customer_id
        WHERE o.customer_id = document_lines.customer_id AND o.contract_id = document_lines.contract_id
            AND o.product_no = document_lines.product_no AND o.frozen AND CAST(o.tax_rate AS REAL) = 0
            AND issued.family_document_id = open.family_document_id
        ORDER BY o.billed_period_start = document_lines.billed_period_start DESC, issued.number_in_contract DESC, o.ordinal
        LIMIT 1
), '')
    WHERE NOT frozen AND tax_basis = '';
-- The contract leaves the tax of a period to a default unless it states a rate above 0, or 0 with a category.
UPDATE document_lines SET has_default_tax = coalesce((
    SELECT json_extract(s.terms, '$.tax') IS NULL
            OR (CAST(json_extract(s.terms, '$.tax') AS REAL) = 0
                AND coalesce(json_extract(s.terms, '$.treatment.category'), 'S') = 'S')
        FROM contract_products s
        WHERE s.contract_id = document_lines.contract_id AND s.customer_id = document_lines.customer_id
            AND s.product_no = document_lines.product_no AND s.terms IS NOT NULL
            AND s.in_force_from <= document_lines.billed_period_start
        ORDER BY s.version DESC, s.in_force_from DESC
        LIMIT 1
), TRUE);
CREATE TRIGGER document_lines_frozen_update BEFORE UPDATE ON document_lines
WHEN OLD.frozen
BEGIN
    SELECT RAISE(ABORT, 'lines of issued documents never change');
END;

CREATE TABLE family_sums_new (
    customer_id        BLOB NOT NULL,
    family_document_id BLOB NOT NULL,
    -- Of the discount at a discount and a tax. Of tax −1, because a key has no NULL.
    product_no         INTEGER NOT NULL,
    -- A decimal without zeros at its end, so that equal rates are one key. Of tax ''.
    discount_rate      TEXT NOT NULL,
    -- Likewise a decimal.
    tax_rate           TEXT NOT NULL,
    -- As lines have it.
    tax_basis          TEXT NOT NULL,
    organization_id    BLOB NOT NULL,
    base_minor         INTEGER NOT NULL,
    amount_minor       INTEGER NOT NULL,
    PRIMARY KEY (customer_id, family_document_id, product_no, discount_rate, tax_rate, tax_basis),
    FOREIGN KEY (family_document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
INSERT INTO family_sums_new (
    customer_id, family_document_id, product_no, discount_rate, tax_rate, tax_basis, organization_id, base_minor, amount_minor
)
    SELECT customer_id, family_document_id, product_no, discount_rate, tax_rate, '{"category":"S"}', organization_id, base_minor,
        amount_minor
    FROM family_sums WHERE tax_rate <> '0';
WITH issued AS (
    SELECT d.customer_id, d.family_document_id, d.organization_id, CASE d.kind WHEN 'CREDIT' THEN -1 ELSE 1 END AS sign, i.content
        FROM issued_documents i JOIN documents d ON d.document_id = i.document_id AND d.customer_id = i.customer_id
        WHERE d.lifecycle IN ('ISSUED', 'UNCOLLECTIBLE')
            AND (d.customer_id, d.family_document_id) IN (
                SELECT customer_id, family_document_id FROM family_sums WHERE tax_rate = '0'
            )
), said AS (
    SELECT i.customer_id, i.family_document_id, i.organization_id, i.sign,
            json_extract(p.value, '$.product_no') AS product_no, json_extract(p.value, '$.discount_rate') AS discount_rate,
            json_extract(p.value, '$.tax_rate') AS tax_rate, json_extract(p.value, '$.treatment') AS tax_basis,
            json_extract(p.value, '$.sub_total') AS base, json_extract(p.value, '$.discount') AS amount
        FROM issued i, json_each(i.content, '$.issued.content.products') p
    UNION ALL
    SELECT i.customer_id, i.family_document_id, i.organization_id, i.sign,
            -1, '', json_extract(t.value, '$.rate'), json_extract(t.value, '$.treatment'), json_extract(t.value, '$.base'),
            json_extract(t.value, '$.amount')
        FROM issued i, json_each(i.content, '$.issued.content.taxes') t
)
INSERT INTO family_sums_new (
    customer_id, family_document_id, product_no, discount_rate, tax_rate, tax_basis, organization_id, base_minor, amount_minor
)
    SELECT customer_id, family_document_id, product_no,
        CASE WHEN instr(discount_rate, '.') > 0 THEN rtrim(rtrim(discount_rate, '0'), '.') ELSE discount_rate END,
        '0', coalesce(tax_basis, ''), organization_id,
        -- `30.86 EUR`, with the digits that the currency has.
        sum(sign * CAST(replace(substr(base, 1, instr(base, ' ') - 1), '.', '') AS INTEGER)),
        sum(sign * CAST(replace(substr(amount, 1, instr(amount, ' ') - 1), '.', '') AS INTEGER))
    FROM said
    WHERE CAST(tax_rate AS REAL) = 0
    GROUP BY 1, 2, 3, 4, 5, 6, 7;
DROP TABLE family_sums;
ALTER TABLE family_sums_new RENAME TO family_sums;
