-- What is owed, and by which document: applications of credits and payments, reversals, refunds, write-offs.

-- One row per customer, entity and currency: who decides about money holds it, and it has the sum of what is unapplied.
CREATE TABLE accounts (
    customer_id     BLOB NOT NULL,
    entity_ref      TEXT NOT NULL,
    currency        TEXT NOT NULL,
    organization_id BLOB NOT NULL,
    unapplied_minor INTEGER NOT NULL CHECK (unapplied_minor >= 0),
    PRIMARY KEY (customer_id, entity_ref, currency)
) STRICT, WITHOUT ROWID;
CREATE INDEX accounts_of_organization ON accounts (organization_id, customer_id, entity_ref, currency);

-- An amount of a credit or a payment that settles a document. Those taken back stay, with who and when.
CREATE TABLE applications (
    application_id   BLOB NOT NULL,
    customer_id      BLOB NOT NULL,
    organization_id  BLOB NOT NULL,
    entity_ref       TEXT NOT NULL,
    currency         TEXT NOT NULL,
    from_document_id BLOB,
    from_payment_id  BLOB,
    to_document_id   BLOB NOT NULL,
    amount_minor     INTEGER NOT NULL CHECK (amount_minor > 0),
    applied_on       INTEGER NOT NULL,
    recorded_at      INTEGER NOT NULL,
    recorded_by      TEXT NOT NULL,
    undone_at        INTEGER,
    undone_by        TEXT,
    PRIMARY KEY (application_id, customer_id),
    FOREIGN KEY (from_document_id, customer_id) REFERENCES documents (document_id, customer_id),
    FOREIGN KEY (to_document_id, customer_id) REFERENCES documents (document_id, customer_id),
    CHECK ((from_document_id IS NULL) <> (from_payment_id IS NULL)),
    CHECK ((undone_at IS NULL) = (undone_by IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX applications_to ON applications (customer_id, to_document_id);
CREATE INDEX applications_from_document ON applications (customer_id, from_document_id) WHERE from_document_id IS NOT NULL;
CREATE INDEX applications_from_payment ON applications (customer_id, from_payment_id) WHERE from_payment_id IS NOT NULL;
CREATE INDEX applications_of_account ON applications (customer_id, entity_ref, currency);

-- Amounts that were given up on; below zero where that was lessened.
CREATE TABLE write_offs (
    write_off_id    BLOB NOT NULL,
    customer_id     BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    entity_ref      TEXT NOT NULL,
    currency        TEXT NOT NULL,
    document_id     BLOB NOT NULL,
    amount_minor    INTEGER NOT NULL CHECK (amount_minor <> 0),
    written_off_on  INTEGER NOT NULL,
    reason          TEXT,
    recorded_at     INTEGER NOT NULL,
    recorded_by     TEXT NOT NULL,
    PRIMARY KEY (write_off_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX write_offs_of_account ON write_offs (customer_id, entity_ref, currency);

ALTER TABLE customers ADD COLUMN apply_balance INTEGER NOT NULL DEFAULT 1;

-- Copies of what applications and refunds say: of a credit what of it is used, and what is left; of others what is left to pay.
ALTER TABLE documents ADD COLUMN used_minor INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN amount_due_minor INTEGER;
ALTER TABLE documents ADD COLUMN unapplied_minor INTEGER;
CREATE INDEX documents_of_family ON documents (customer_id, family_document_id);

ALTER TABLE payments RENAME TO payments_before;
DROP INDEX payments_of_document;
CREATE TABLE payments (
    payment_id      BLOB NOT NULL,
    customer_id     BLOB NOT NULL,
    document_id     BLOB NOT NULL,
    amount_minor    INTEGER NOT NULL,
    paid_date       INTEGER NOT NULL,
    reference       TEXT,
    recorded_at     INTEGER NOT NULL,
    recorded_by     TEXT NOT NULL,
    organization_id BLOB NOT NULL,
    entity_ref      TEXT NOT NULL,
    currency        TEXT NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('PAYMENT', 'REFUND')),
    -- Of a refund: what it pays out.
    of_document_id  BLOB,
    of_payment_id   BLOB,
    method          TEXT,
    -- What of a payment is applied or refunded, and what is left of it.
    used_minor      INTEGER NOT NULL,
    unapplied_minor INTEGER NOT NULL,
    reversed_on     INTEGER,
    reversal_reason TEXT,
    reversed_at     INTEGER,
    reversed_by     TEXT,
    PRIMARY KEY (payment_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id),
    CHECK ((kind = 'REFUND') = ((of_document_id IS NULL) <> (of_payment_id IS NULL))),
    CHECK ((reversed_on IS NULL) = (reversed_at IS NULL) AND (reversed_on IS NULL) = (reversed_by IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO payments (
    payment_id, customer_id, document_id, amount_minor, paid_date, reference, recorded_at, recorded_by, organization_id, entity_ref,
    currency, kind, used_minor, unapplied_minor
)
    SELECT p.payment_id, p.customer_id, p.document_id, p.amount_minor, p.paid_date, p.reference, p.recorded_at, p.recorded_by,
        d.organization_id, d.entity_ref, d.currency, 'PAYMENT', p.amount_minor, 0
    FROM payments_before p JOIN documents d ON d.document_id = p.document_id AND d.customer_id = p.customer_id;
DROP TABLE payments_before;
CREATE INDEX payments_of_document ON payments (customer_id, document_id);
CREATE INDEX payments_unapplied ON payments (customer_id, entity_ref, currency) WHERE unapplied_minor > 0;
CREATE INDEX payments_by_date ON payments (organization_id, paid_date, payment_id);

-- A payment settled its document so far.
INSERT INTO applications (
    application_id, customer_id, organization_id, entity_ref, currency, from_payment_id, to_document_id, amount_minor, applied_on,
    recorded_at, recorded_by
)
    SELECT payment_id, customer_id, organization_id, entity_ref, currency, payment_id, document_id, amount_minor, paid_date,
        recorded_at, recorded_by
    FROM payments;
-- A credit lowered its parent, below zero if need be. It settles what is due in its family: debits and children first, latest
-- first. Both are laid end to end; where they overlap, one settles the other.
WITH credit AS (
    SELECT document_id, customer_id, organization_id, entity_ref, currency, family_document_id, total_minor, issue_date, created_at,
        sum(total_minor) OVER (
            PARTITION BY customer_id, family_document_id ORDER BY issue_date, created_at, document_id
        ) AS upto
        FROM documents WHERE kind = 'CREDIT' AND lifecycle IN ('ISSUED', 'UNCOLLECTIBLE') AND total_minor > 0
), owed AS (
    SELECT document_id, customer_id, family_document_id, total_minor - paid_minor AS left_minor,
        sum(total_minor - paid_minor) OVER (
            PARTITION BY customer_id, family_document_id
            ORDER BY CASE WHEN kind = 'INVOICE' AND purpose <> 'USAGE' THEN 1 ELSE 0 END, issue_date DESC, document_id DESC
        ) AS upto
        FROM documents WHERE kind <> 'CREDIT' AND lifecycle IN ('ISSUED', 'UNCOLLECTIBLE') AND total_minor > paid_minor
), overlap AS (
    SELECT c.customer_id, c.organization_id, c.entity_ref, c.currency, c.document_id AS from_document_id,
        o.document_id AS to_document_id, c.issue_date, c.created_at,
        CASE WHEN c.upto < o.upto THEN c.upto ELSE o.upto END
            - CASE WHEN c.upto - c.total_minor > o.upto - o.left_minor THEN c.upto - c.total_minor ELSE o.upto - o.left_minor END
            AS amount_minor
        FROM credit c JOIN owed o ON o.customer_id = c.customer_id AND o.family_document_id = c.family_document_id
)
INSERT INTO applications (
    application_id, customer_id, organization_id, entity_ref, currency, from_document_id, to_document_id, amount_minor, applied_on,
    recorded_at, recorded_by
)
    SELECT randomblob(16), customer_id, organization_id, entity_ref, currency, from_document_id, to_document_id, amount_minor, issue_date,
        created_at, 'service'
    FROM overlap WHERE amount_minor > 0;

UPDATE documents SET
    credits_minor = coalesce((
        SELECT sum(a.amount_minor) FROM applications a
            WHERE a.customer_id = documents.customer_id AND a.to_document_id = documents.document_id AND a.from_document_id IS NOT NULL
    ), 0),
    used_minor = coalesce((
        SELECT sum(a.amount_minor) FROM applications a
            WHERE a.customer_id = documents.customer_id AND a.from_document_id = documents.document_id
    ), 0)
    WHERE total_minor IS NOT NULL;
UPDATE documents SET
    amount_due_minor = CASE WHEN kind <> 'CREDIT' AND lifecycle = 'ISSUED' THEN total_minor - paid_minor - credits_minor
        WHEN kind <> 'CREDIT' AND lifecycle = 'UNCOLLECTIBLE' THEN 0 END,
    unapplied_minor = CASE WHEN kind = 'CREDIT' AND lifecycle IN ('ISSUED', 'UNCOLLECTIBLE') THEN total_minor - used_minor END,
    paid_date = CASE WHEN kind <> 'CREDIT' AND lifecycle IN ('ISSUED', 'UNCOLLECTIBLE') AND total_minor = paid_minor + credits_minor
        THEN coalesce(paid_date, issue_date) END
    WHERE total_minor IS NOT NULL;
CREATE INDEX documents_due ON documents (customer_id, entity_ref, currency, due_date, document_id) WHERE amount_due_minor > 0;
CREATE INDEX documents_unapplied ON documents (customer_id, entity_ref, currency) WHERE unapplied_minor > 0;

-- What was given up on, where anything was.
INSERT INTO write_offs (
    write_off_id, customer_id, organization_id, entity_ref, currency, document_id, amount_minor, written_off_on, recorded_at, recorded_by
)
    SELECT document_id, customer_id, organization_id, entity_ref, currency, document_id, total_minor - paid_minor - credits_minor,
        issue_date, created_at, 'service'
    FROM documents
    WHERE kind <> 'CREDIT' AND lifecycle = 'UNCOLLECTIBLE' AND total_minor > paid_minor + credits_minor;

INSERT INTO accounts (customer_id, entity_ref, currency, organization_id, unapplied_minor)
    SELECT customer_id, entity_ref, currency, organization_id, sum(coalesce(unapplied_minor, 0))
    FROM documents WHERE total_minor IS NOT NULL
    GROUP BY customer_id, entity_ref, currency, organization_id;
