-- A tax treatment is rate, category and reason, as one value, and default taxes hold from a day on.

-- The default taxes of customers and entities, oldest first; NULL: nothing is said. What was said holds since the beginning.
ALTER TABLE customers ADD COLUMN taxes JSON;
UPDATE customers
    SET taxes = json_build_array(json_strip_nulls(json_build_object('rate', tax::text, 'basis', legal -> 'treatment')))
    WHERE tax IS NOT NULL OR legal -> 'treatment' IS NOT NULL;
UPDATE customers SET legal = CASE WHEN legal::jsonb - 'treatment' = '{}'::jsonb THEN NULL ELSE (legal::jsonb - 'treatment')::json END
    WHERE legal -> 'treatment' IS NOT NULL;
ALTER TABLE customers DROP COLUMN tax;
ALTER TABLE entities ADD COLUMN taxes JSON;
UPDATE entities SET taxes = json_build_array(json_build_object('basis', legal -> 'treatment'))
    WHERE legal -> 'treatment' IS NOT NULL;
UPDATE entities SET legal = CASE WHEN legal::jsonb - 'treatment' = '{}'::jsonb THEN NULL ELSE (legal::jsonb - 'treatment')::json END
    WHERE legal -> 'treatment' IS NOT NULL;

-- Each line says at which default it was billed: a family keeps none.
ALTER TABLE documents DROP COLUMN default_tax;

DROP TRIGGER document_lines_frozen ON document_lines;
ALTER TABLE document_lines
    -- Category and reason as JSON; '' where neither is known.
    ADD COLUMN tax_basis TEXT NOT NULL DEFAULT '',
    -- Whether the tax follows a default of the customer or the entity.
    ADD COLUMN has_default_tax BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE document_lines SET tax_basis = '{"category":"S"}' WHERE tax_rate <> 0;
-- What isn't taxed: as its document says.
WITH said AS (
    SELECT i.document_id, i.customer_id, p.value ->> 'treatment' AS tax_basis,
            row_number() OVER (PARTITION BY i.document_id, i.customer_id ORDER BY p.no, l.no) - 1 AS ordinal
        FROM issued_documents i
            CROSS JOIN LATERAL json_array_elements(i.content::json #> '{issued,content,products}') WITH ORDINALITY p (value, no)
            CROSS JOIN LATERAL json_array_elements(p.value -> 'lines') WITH ORDINALITY l (value, no)
        WHERE EXISTS (
            SELECT 1 FROM document_lines z
            WHERE z.document_id = i.document_id AND z.customer_id = i.customer_id AND z.frozen AND z.tax_basis = ''
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
            AND o.product_no = document_lines.product_no AND o.frozen AND o.tax_rate = 0
            AND issued.family_document_id = open.family_document_id
        ORDER BY o.billed_period_start = document_lines.billed_period_start DESC, issued.number_in_contract DESC, o.ordinal
        LIMIT 1
), '')
    WHERE NOT frozen AND tax_basis = '';
-- The contract leaves the tax of a period to a default unless it states a rate above 0, or 0 with a category.
UPDATE document_lines SET has_default_tax = coalesce((
    SELECT s.terms ->> 'tax' IS NULL
            OR ((s.terms ->> 'tax')::numeric = 0 AND coalesce(s.terms -> 'treatment' ->> 'category', 'S') = 'S')
        FROM contract_products s
        WHERE s.contract_id = document_lines.contract_id AND s.customer_id = document_lines.customer_id
            AND s.product_no = document_lines.product_no AND s.terms IS NOT NULL
            AND s.in_force_from <= document_lines.billed_period_start
        ORDER BY s.version DESC, s.in_force_from DESC
        LIMIT 1
), TRUE);
ALTER TABLE document_lines
    ALTER COLUMN tax_basis DROP DEFAULT,
    ALTER COLUMN has_default_tax DROP DEFAULT;
CREATE TRIGGER document_lines_frozen BEFORE UPDATE OR DELETE ON document_lines
    FOR EACH ROW WHEN (OLD.frozen) EXECUTE FUNCTION refuse_change_of_issued_lines();

ALTER TABLE family_sums
    -- As lines have it.
    ADD COLUMN tax_basis TEXT COLLATE "C" NOT NULL DEFAULT '',
    DROP CONSTRAINT family_sums_pkey,
    ADD PRIMARY KEY (customer_id, family_document_id, product_no, discount_rate, tax_rate, tax_basis);
UPDATE family_sums SET tax_basis = '{"category":"S"}' WHERE tax_rate <> '0';
CREATE TEMPORARY TABLE untaxed_sums ON COMMIT DROP AS
    WITH issued AS (
        SELECT d.customer_id, d.family_document_id, d.organization_id, CASE d.kind WHEN 'CREDIT' THEN -1 ELSE 1 END AS sign,
                i.content::json #> '{issued,content}' AS content
            FROM issued_documents i JOIN documents d ON d.document_id = i.document_id AND d.customer_id = i.customer_id
            WHERE d.lifecycle IN ('ISSUED', 'UNCOLLECTIBLE')
                AND EXISTS (
                    SELECT 1 FROM family_sums z
                    WHERE z.customer_id = d.customer_id AND z.family_document_id = d.family_document_id AND z.tax_rate = '0'
                )
    ), said AS (
        SELECT i.customer_id, i.family_document_id, i.organization_id, i.sign,
                (p ->> 'product_no')::integer AS product_no, p ->> 'discount_rate' AS discount_rate,
                p ->> 'tax_rate' AS tax_rate, p ->> 'treatment' AS tax_basis, p ->> 'sub_total' AS base, p ->> 'discount' AS amount
            FROM issued i, json_array_elements(i.content -> 'products') p
        UNION ALL
        SELECT i.customer_id, i.family_document_id, i.organization_id, i.sign,
                -1, '', t ->> 'rate', t ->> 'treatment', t ->> 'base', t ->> 'amount'
            FROM issued i, json_array_elements(i.content -> 'taxes') t
    )
    SELECT customer_id, family_document_id, product_no,
        CASE WHEN position('.' IN discount_rate) > 0 THEN rtrim(rtrim(discount_rate, '0'), '.') ELSE discount_rate END
            AS discount_rate,
        coalesce(tax_basis, '') AS tax_basis, organization_id,
        -- `30.86 EUR`, with the digits that the currency has.
        sum(sign * replace(split_part(base, ' ', 1), '.', '')::bigint)::bigint AS base_minor,
        sum(sign * replace(split_part(amount, ' ', 1), '.', '')::bigint)::bigint AS amount_minor
    FROM said
    WHERE tax_rate::numeric = 0
    GROUP BY 1, 2, 3, 4, 5, 6;
DELETE FROM family_sums WHERE tax_rate = '0';
INSERT INTO family_sums (
    customer_id, family_document_id, product_no, discount_rate, tax_rate, tax_basis, organization_id, base_minor, amount_minor
)
    SELECT customer_id, family_document_id, product_no, discount_rate, '0', tax_basis, organization_id, base_minor, amount_minor
    FROM untaxed_sums;
DROP TABLE untaxed_sums;
ALTER TABLE family_sums ALTER COLUMN tax_basis DROP DEFAULT;
