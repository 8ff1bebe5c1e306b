-- Lists: what documents, contracts and customers are narrowed to and ordered by, with an index for each.

-- When it was last opened, issued, put out of force, paid, credited, applied or written off. Of payments and credits of before only the day is known.
ALTER TABLE documents ADD COLUMN updated_at TIMESTAMPTZ;
UPDATE documents d SET updated_at = greatest(
    d.created_at,
    d.voided_at,
    d.paid_date::timestamp AT TIME ZONE 'UTC',
    (SELECT i.issued_at FROM issued_documents i WHERE i.document_id = d.document_id AND i.customer_id = d.customer_id),
    (SELECT max(p.recorded_at) FROM payments p WHERE p.document_id = d.document_id AND p.customer_id = d.customer_id)
);
ALTER TABLE documents ALTER COLUMN updated_at SET NOT NULL;

-- The purchase order number it shows: of a draft its contract's.
ALTER TABLE documents ADD COLUMN po_number TEXT COLLATE "C";
UPDATE documents d SET po_number = CASE
    WHEN d.lifecycle = 'DRAFT' THEN (
        SELECT c.po_number FROM contracts c WHERE c.contract_id = d.contract_id AND c.customer_id = d.customer_id
    )
    WHEN d.issue_date IS NULL THEN d.discarded_content ->> 'po_number'
    ELSE (
        SELECT i.content -> 'issued' ->> 'po_number' FROM issued_documents i
        WHERE i.document_id = d.document_id AND i.customer_id = d.customer_id
    )
END;

CREATE INDEX documents_of_customer ON documents (customer_id, created_at, document_id);
CREATE INDEX documents_of_entity ON documents (organization_id, entity_ref, created_at, document_id);
CREATE INDEX documents_by_period ON documents (organization_id, period_start, document_id);
CREATE INDEX documents_by_issue_date ON documents (organization_id, issue_date, document_id);
-- A due date is that of an issued invoice or debit; what has none comes last, by reference.
CREATE INDEX documents_by_due_date ON documents (organization_id, due_date, document_id) WHERE amount_due_minor IS NOT NULL;
CREATE INDEX documents_without_due_date ON documents (organization_id, document_id) WHERE amount_due_minor IS NULL;
CREATE INDEX documents_by_amount ON documents (organization_id, currency, total_minor, document_id) WHERE total_minor IS NOT NULL;
CREATE INDEX documents_by_update ON documents (organization_id, updated_at, document_id);
CREATE INDEX documents_by_po_number ON documents (organization_id, po_number, created_at, document_id) WHERE po_number IS NOT NULL;
-- What is owed: few of many, once most is paid.
CREATE INDEX documents_owed ON documents (organization_id, due_date, document_id) WHERE amount_due_minor > 0;
-- What most documents aren't.
CREATE INDEX documents_not_issued ON documents (organization_id, lifecycle, created_at, document_id) WHERE lifecycle <> 'ISSUED';
CREATE INDEX documents_no_invoices ON documents (organization_id, kind, created_at, document_id) WHERE kind <> 'INVOICE';
CREATE INDEX documents_not_regular ON documents (organization_id, purpose, created_at, document_id) WHERE purpose <> 'REGULAR';

-- The first and the last day a contract bills, as its newest version has it, and the entity whose calendar tells its state: that
-- of its first product's newest terms. NULL where nothing is billed.
ALTER TABLE contracts
    ADD COLUMN first_day DATE,
    ADD COLUMN last_day DATE,
    ADD COLUMN entity_ref TEXT COLLATE "C";
WITH agreed AS (
    SELECT s.contract_id, s.customer_id, s.in_force_from, s.terms,
        -- From its date on, a segment takes the place of all before it, also where it begins before them.
        (SELECT min(o.in_force_from) FROM contract_products o
            WHERE o.contract_id = s.contract_id AND o.customer_id = s.customer_id AND o.product_no = s.product_no
                AND (o.version, o.in_force_from) > (s.version, s.in_force_from)) AS until
    FROM contract_products s WHERE s.terms IS NOT NULL
), days AS (
    SELECT contract_id, customer_id,
        greatest(in_force_from, (terms -> 'schedule' ->> 'first_day')::date) AS first_day,
        least(until - 1, (terms -> 'schedule' ->> 'last_day')::date) AS last_day
    FROM agreed
), billed AS (
    SELECT contract_id, customer_id, min(first_day) AS first_day, max(last_day) AS last_day
    FROM days WHERE first_day <= last_day GROUP BY contract_id, customer_id
)
UPDATE contracts c SET first_day = billed.first_day, last_day = billed.last_day
    FROM billed WHERE billed.contract_id = c.contract_id AND billed.customer_id = c.customer_id;
UPDATE contracts c SET entity_ref = (
    SELECT s.terms ->> 'entity_ref' FROM contract_products s
    WHERE s.contract_id = c.contract_id AND s.customer_id = c.customer_id AND s.terms IS NOT NULL
        AND s.product_no = (
            SELECT min(f.product_no) FROM contract_products f WHERE f.contract_id = c.contract_id AND f.customer_id = c.customer_id
        )
    ORDER BY s.version DESC, s.in_force_from DESC LIMIT 1
);

CREATE INDEX contracts_by_creation ON contracts (organization_id, created_at, contract_id);
CREATE INDEX contracts_by_number ON contracts (organization_id, number);
CREATE INDEX contracts_by_po_number ON contracts (organization_id, po_number, created_at, contract_id) WHERE po_number IS NOT NULL;
CREATE INDEX contracts_by_first_day ON contracts (organization_id, first_day);
CREATE INDEX contracts_by_last_day ON contracts (organization_id, last_day);
CREATE INDEX contracts_cancelled ON contracts (organization_id, created_at, contract_id) WHERE cancelled_at IS NOT NULL;

-- Letters A to Z in either case, as on SQLite: those that the collation C knows.
CREATE INDEX customers_by_creation ON customers (organization_id, created_at, customer_ref);
CREATE INDEX customers_by_lower_name ON customers (organization_id, lower(name COLLATE "C"));
CREATE INDEX customers_by_email ON customers (organization_id, lower(email COLLATE "C")) WHERE email IS NOT NULL;
CREATE INDEX customers_by_tax_id ON customers (organization_id, tax_id) WHERE tax_id IS NOT NULL;

CREATE INDEX payments_by_reference ON payments (organization_id, reference) WHERE reference IS NOT NULL;
