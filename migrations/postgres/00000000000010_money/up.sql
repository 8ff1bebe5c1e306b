-- What is owed, and by which document: applications of credits and payments, reversals, refunds, write-offs.

-- One row per customer, entity and currency: who decides about money holds it, and it has the sum of what is unapplied.
CREATE TABLE accounts (
    customer_id     UUID NOT NULL,
    entity_ref      TEXT COLLATE "C" NOT NULL,
    currency        TEXT COLLATE "C" NOT NULL,
    organization_id UUID NOT NULL,
    unapplied_minor BIGINT NOT NULL CHECK (unapplied_minor >= 0),
    PRIMARY KEY (customer_id, entity_ref, currency)
) WITH (fillfactor = 70);
CREATE INDEX accounts_of_organization ON accounts (organization_id, customer_id, entity_ref, currency);

-- An amount of a credit or a payment that settles a document. Those taken back stay, with who and when.
CREATE TABLE applications (
    application_id   UUID NOT NULL,
    customer_id      UUID NOT NULL,
    organization_id  UUID NOT NULL,
    entity_ref       TEXT COLLATE "C" NOT NULL,
    currency         TEXT COLLATE "C" NOT NULL,
    from_document_id UUID,
    from_payment_id  UUID,
    to_document_id   UUID NOT NULL,
    amount_minor     BIGINT NOT NULL CHECK (amount_minor > 0),
    applied_on       DATE NOT NULL,
    recorded_at      TIMESTAMPTZ NOT NULL,
    recorded_by      TEXT NOT NULL,
    undone_at        TIMESTAMPTZ,
    undone_by        TEXT,
    PRIMARY KEY (application_id, customer_id),
    FOREIGN KEY (from_document_id, customer_id) REFERENCES documents (document_id, customer_id),
    FOREIGN KEY (to_document_id, customer_id) REFERENCES documents (document_id, customer_id),
    CHECK ((from_document_id IS NULL) <> (from_payment_id IS NULL)),
    CHECK ((undone_at IS NULL) = (undone_by IS NULL))
);
CREATE INDEX applications_to ON applications (customer_id, to_document_id);
CREATE INDEX applications_from_document ON applications (customer_id, from_document_id) WHERE from_document_id IS NOT NULL;
CREATE INDEX applications_from_payment ON applications (customer_id, from_payment_id) WHERE from_payment_id IS NOT NULL;
CREATE INDEX applications_of_account ON applications (customer_id, entity_ref, currency);

-- Amounts that were given up on; below zero where that was lessened.
CREATE TABLE write_offs (
    write_off_id    UUID NOT NULL,
    customer_id     UUID NOT NULL,
    organization_id UUID NOT NULL,
    entity_ref      TEXT COLLATE "C" NOT NULL,
    currency        TEXT COLLATE "C" NOT NULL,
    document_id     UUID NOT NULL,
    amount_minor    BIGINT NOT NULL CHECK (amount_minor <> 0),
    written_off_on  DATE NOT NULL,
    reason          TEXT,
    recorded_at     TIMESTAMPTZ NOT NULL,
    recorded_by     TEXT NOT NULL,
    PRIMARY KEY (write_off_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
);
CREATE INDEX write_offs_of_account ON write_offs (customer_id, entity_ref, currency);

ALTER TABLE customers ADD COLUMN apply_balance BOOLEAN NOT NULL DEFAULT TRUE;

-- Copies of what applications and refunds say: of a credit what of it is used, and what is left; of others what is left to pay.
ALTER TABLE documents ADD COLUMN used_minor BIGINT NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN amount_due_minor BIGINT;
ALTER TABLE documents ADD COLUMN unapplied_minor BIGINT;
CREATE INDEX documents_of_family ON documents (customer_id, family_document_id);

ALTER TABLE payments
    ADD COLUMN organization_id UUID,
    ADD COLUMN entity_ref TEXT COLLATE "C",
    ADD COLUMN currency TEXT COLLATE "C",
    ADD COLUMN kind TEXT NOT NULL DEFAULT 'PAYMENT' CHECK (kind IN ('PAYMENT', 'REFUND')),
    -- Of a refund: what it pays out.
    ADD COLUMN of_document_id UUID,
    ADD COLUMN of_payment_id UUID,
    ADD COLUMN method TEXT,
    -- What of a payment is applied or refunded, and what is left of it.
    ADD COLUMN used_minor BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN unapplied_minor BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN reversed_on DATE,
    ADD COLUMN reversal_reason TEXT,
    ADD COLUMN reversed_at TIMESTAMPTZ,
    ADD COLUMN reversed_by TEXT,
    ADD CHECK ((kind = 'REFUND') = ((of_document_id IS NULL) <> (of_payment_id IS NULL))),
    ADD CHECK ((reversed_on IS NULL) = (reversed_at IS NULL) AND (reversed_on IS NULL) = (reversed_by IS NULL));
UPDATE payments SET organization_id = d.organization_id, entity_ref = d.entity_ref, currency = d.currency, used_minor = amount_minor
    FROM documents d WHERE d.document_id = payments.document_id AND d.customer_id = payments.customer_id;
ALTER TABLE payments
    ALTER COLUMN organization_id SET NOT NULL,
    ALTER COLUMN entity_ref SET NOT NULL,
    ALTER COLUMN currency SET NOT NULL;
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
    SELECT gen_random_uuid(), customer_id, organization_id, entity_ref, currency, from_document_id, to_document_id, amount_minor, issue_date,
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
