-- Invoices, credits and debits, from draft to frozen.

CREATE TABLE documents (
    document_id          UUID NOT NULL,
    customer_id          UUID NOT NULL,
    organization_id      UUID NOT NULL,
    contract_id          UUID NOT NULL,
    entity_ref           TEXT COLLATE "C" NOT NULL,
    kind                 TEXT NOT NULL CHECK (kind IN ('INVOICE', 'CREDIT', 'DEBIT')),
    -- The entity's prefix when the number was taken.
    number_prefix        TEXT NOT NULL,
    sequence             BIGINT NOT NULL,
    purpose              TEXT NOT NULL CHECK (purpose IN ('REGULAR', 'USAGE', 'ADJUSTMENT')),
    slot                 TEXT CHECK (slot IN ('PERIOD', 'USAGE_DEBIT', 'CLOSING')),
    number_in_contract   INTEGER NOT NULL,
    currency             TEXT NOT NULL,
    period_start         DATE NOT NULL,
    -- The day after the last.
    period_end           DATE NOT NULL,
    is_partial_period    BOOLEAN NOT NULL,
    net_terms            TEXT NOT NULL,
    payment              JSON NOT NULL,
    -- The invoice a credit, debit or child belongs to.
    parent_document_id   UUID,
    -- The void document it bills again.
    replaces_document_id UUID,
    created_at           TIMESTAMPTZ NOT NULL,
    lifecycle            TEXT NOT NULL CHECK (lifecycle IN ('DRAFT', 'ISSUED', 'VOID', 'UNCOLLECTIBLE')),
    issue_date           DATE,
    due_date             DATE,
    -- Copies of what the issued content, the payments and the credits say, so that derived states can be filtered.
    total_minor          BIGINT,
    paid_minor           BIGINT NOT NULL,
    credits_minor        BIGINT NOT NULL,
    paid_date            DATE,
    voided_at            TIMESTAMPTZ,
    PRIMARY KEY (document_id, customer_id),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    FOREIGN KEY (parent_document_id, customer_id) REFERENCES documents (document_id, customer_id),
    FOREIGN KEY (replaces_document_id, customer_id) REFERENCES documents (document_id, customer_id),
    CHECK ((purpose = 'REGULAR') = (slot IS NOT NULL)),
    CHECK (period_start < period_end),
    CHECK (lifecycle NOT IN ('ISSUED', 'UNCOLLECTIBLE') OR (issue_date IS NOT NULL AND total_minor IS NOT NULL))
);
CREATE INDEX documents_of_contract ON documents (customer_id, contract_id, created_at, document_id);
CREATE INDEX documents_of_organization ON documents (organization_id, created_at, document_id);
CREATE INDEX documents_of_parent ON documents (customer_id, parent_document_id, purpose, kind) WHERE parent_document_id IS NOT NULL;

-- The products on a document, with the rates it was opened with.
CREATE TABLE document_parts (
    document_id   UUID NOT NULL,
    customer_id   UUID NOT NULL,
    product_no    INTEGER NOT NULL,
    position      INTEGER NOT NULL,
    contract_id   UUID NOT NULL,
    period_start  DATE NOT NULL,
    -- NULL on a document that isn't a period's own.
    slot          TEXT CHECK (slot IN ('PERIOD', 'USAGE_DEBIT', 'CLOSING')),
    tax_rate      NUMERIC NOT NULL,
    discount_rate NUMERIC NOT NULL,
    -- Whether the document is in force: a void one leaves its place free.
    active        BOOLEAN NOT NULL,
    PRIMARY KEY (document_id, customer_id, product_no),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
);
-- A product's period is billed once: one document in force per slot.
CREATE UNIQUE INDEX document_parts_in_force ON document_parts (customer_id, contract_id, product_no, period_start, slot) WHERE active;
-- What a new document replaces.
CREATE INDEX document_parts_void ON document_parts (customer_id, contract_id, product_no, period_start, slot) WHERE NOT active;

-- What each line of an issued document or an open adjustment bills, for summing up what a service period was billed already.
CREATE TABLE document_lines (
    document_id          UUID NOT NULL,
    customer_id          UUID NOT NULL,
    ordinal              INTEGER NOT NULL,
    contract_id          UUID NOT NULL,
    product_no           INTEGER NOT NULL,
    -- NULL: the true-up to the pricing's minimum fee.
    line_item_id         TEXT COLLATE "C",
    usage_product_ref    TEXT COLLATE "C",
    service_period_start DATE NOT NULL,
    service_period_end   DATE NOT NULL,
    quantity             NUMERIC,
    amount_minor         BIGINT NOT NULL,
    PRIMARY KEY (document_id, customer_id, ordinal),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
);
CREATE INDEX document_lines_of_service_period ON document_lines (customer_id, contract_id, product_no, service_period_start);

-- What issued documents say, for ever: to the byte, each hash taken over the one before it in its series.
CREATE TABLE issued_documents (
    document_id     UUID NOT NULL,
    customer_id     UUID NOT NULL,
    organization_id UUID NOT NULL,
    entity_ref      TEXT COLLATE "C" NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('INVOICE', 'CREDIT', 'DEBIT')),
    -- Counts the series' issued documents from 1, in the order they were issued.
    chain_position  BIGINT NOT NULL,
    previous_hash   BYTEA NOT NULL,
    content_hash    BYTEA NOT NULL,
    content         JSON NOT NULL,
    issued_at       TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (document_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
);
CREATE INDEX issued_documents_chain ON issued_documents (organization_id, entity_ref, kind, chain_position);

CREATE TABLE payments (
    payment_id   UUID NOT NULL,
    customer_id  UUID NOT NULL,
    document_id  UUID NOT NULL,
    amount_minor BIGINT NOT NULL,
    paid_date    DATE NOT NULL,
    reference    TEXT,
    recorded_at  TIMESTAMPTZ NOT NULL,
    recorded_by  TEXT NOT NULL,
    PRIMARY KEY (payment_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
);
CREATE INDEX payments_of_document ON payments (customer_id, document_id);

-- One counter per entity and kind of document, one per organization for contracts (kind CONTRACT, entity '').
-- Room on the page lets updates stay there (HOT). A counter row rolls back with its transaction; a sequence would leave gaps.
CREATE TABLE number_series (
    organization_id UUID NOT NULL,
    entity_ref      TEXT COLLATE "C" NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('INVOICE', 'CREDIT', 'DEBIT', 'CONTRACT')),
    last            BIGINT NOT NULL,
    -- Issued documents, and the hash of the last.
    chain_length    BIGINT NOT NULL,
    chain_head      BYTEA NOT NULL,
    PRIMARY KEY (organization_id, entity_ref, kind)
) WITH (fillfactor = 50);

-- Issued documents never change.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% never changes', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER issued_documents_frozen BEFORE UPDATE OR DELETE ON issued_documents
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER issued_documents_kept BEFORE TRUNCATE ON issued_documents
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE FUNCTION refuse_change_of_issued_lines() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    line document_lines := CASE WHEN TG_OP = 'INSERT' THEN NEW ELSE OLD END;
BEGIN
    IF EXISTS (SELECT 1 FROM issued_documents i WHERE i.document_id = line.document_id AND i.customer_id = line.customer_id) THEN
        RAISE EXCEPTION 'lines of issued documents never change' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER document_lines_frozen BEFORE INSERT OR UPDATE OR DELETE ON document_lines
    FOR EACH ROW EXECUTE FUNCTION refuse_change_of_issued_lines();

