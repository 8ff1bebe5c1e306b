-- Invoices, credits and debits, from draft to frozen.

CREATE TABLE documents (
    document_id          BLOB NOT NULL,
    customer_id          BLOB NOT NULL,
    organization_id      BLOB NOT NULL,
    contract_id          BLOB NOT NULL,
    entity_ref           TEXT NOT NULL,
    kind                 TEXT NOT NULL CHECK (kind IN ('INVOICE', 'CREDIT', 'DEBIT')),
    -- The entity's prefix when the number was taken.
    number_prefix        TEXT NOT NULL,
    sequence             INTEGER NOT NULL,
    purpose              TEXT NOT NULL CHECK (purpose IN ('REGULAR', 'USAGE', 'ADJUSTMENT')),
    slot                 TEXT CHECK (slot IN ('PERIOD', 'USAGE_DEBIT', 'CLOSING')),
    number_in_contract   INTEGER NOT NULL,
    currency             TEXT NOT NULL,
    period_start         INTEGER NOT NULL,
    -- The day after the last.
    period_end           INTEGER NOT NULL,
    is_partial_period    INTEGER NOT NULL,
    net_terms            TEXT NOT NULL,
    payment              TEXT NOT NULL,
    -- The invoice a credit, debit or child belongs to.
    parent_document_id   BLOB,
    -- The void document it bills again.
    replaces_document_id BLOB,
    created_at           INTEGER NOT NULL,
    lifecycle            TEXT NOT NULL CHECK (lifecycle IN ('DRAFT', 'ISSUED', 'VOID', 'UNCOLLECTIBLE')),
    issue_date           INTEGER,
    due_date             INTEGER,
    -- Copies of what the issued content, the payments and the credits say, so that derived states can be filtered.
    total_minor          INTEGER,
    paid_minor           INTEGER NOT NULL,
    credits_minor        INTEGER NOT NULL,
    paid_date            INTEGER,
    voided_at            INTEGER,
    PRIMARY KEY (document_id, customer_id),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    FOREIGN KEY (parent_document_id, customer_id) REFERENCES documents (document_id, customer_id),
    FOREIGN KEY (replaces_document_id, customer_id) REFERENCES documents (document_id, customer_id),
    CHECK ((purpose = 'REGULAR') = (slot IS NOT NULL)),
    CHECK (period_start < period_end),
    CHECK (lifecycle NOT IN ('ISSUED', 'UNCOLLECTIBLE') OR (issue_date IS NOT NULL AND total_minor IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX documents_of_contract ON documents (customer_id, contract_id, created_at, document_id);
CREATE INDEX documents_of_organization ON documents (organization_id, created_at, document_id);
CREATE INDEX documents_of_parent ON documents (customer_id, parent_document_id, purpose, kind) WHERE parent_document_id IS NOT NULL;

-- The products on a document, with the rates it was opened with.
CREATE TABLE document_parts (
    document_id   BLOB NOT NULL,
    customer_id   BLOB NOT NULL,
    product_no    INTEGER NOT NULL,
    position      INTEGER NOT NULL,
    contract_id   BLOB NOT NULL,
    period_start  INTEGER NOT NULL,
    -- NULL on a document that isn't a period's own.
    slot          TEXT CHECK (slot IN ('PERIOD', 'USAGE_DEBIT', 'CLOSING')),
    tax_rate      TEXT NOT NULL,
    discount_rate TEXT NOT NULL,
    -- Whether the document is in force: a void one leaves its place free.
    active        INTEGER NOT NULL,
    PRIMARY KEY (document_id, customer_id, product_no),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
-- A product's period is billed once: one document in force per slot.
CREATE UNIQUE INDEX document_parts_in_force ON document_parts (customer_id, contract_id, product_no, period_start, slot) WHERE active;
-- What a new document replaces.
CREATE INDEX document_parts_void ON document_parts (customer_id, contract_id, product_no, period_start, slot) WHERE NOT active;

-- What each line of an issued document or an open adjustment bills, for summing up what a service period was billed already.
CREATE TABLE document_lines (
    document_id          BLOB NOT NULL,
    customer_id          BLOB NOT NULL,
    ordinal              INTEGER NOT NULL,
    contract_id          BLOB NOT NULL,
    product_no           INTEGER NOT NULL,
    -- NULL: the true-up to the pricing's minimum fee.
    line_item_id         TEXT,
    usage_product_ref    TEXT,
    service_period_start INTEGER NOT NULL,
    service_period_end   INTEGER NOT NULL,
    quantity             TEXT,
    amount_minor         INTEGER NOT NULL,
    PRIMARY KEY (document_id, customer_id, ordinal),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX document_lines_of_service_period ON document_lines (customer_id, contract_id, product_no, service_period_start);

-- What issued documents say, for ever: to the byte, each hash taken over the one before it in its series.
CREATE TABLE issued_documents (
    document_id     BLOB NOT NULL,
    customer_id     BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    entity_ref      TEXT NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('INVOICE', 'CREDIT', 'DEBIT')),
    -- Counts the series' issued documents from 1, in the order they were issued.
    chain_position  INTEGER NOT NULL,
    previous_hash   BLOB NOT NULL,
    content_hash    BLOB NOT NULL,
    content         TEXT NOT NULL,
    issued_at       INTEGER NOT NULL,
    PRIMARY KEY (document_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT;
CREATE INDEX issued_documents_chain ON issued_documents (organization_id, entity_ref, kind, chain_position);

CREATE TABLE payments (
    payment_id   BLOB NOT NULL,
    customer_id  BLOB NOT NULL,
    document_id  BLOB NOT NULL,
    amount_minor INTEGER NOT NULL,
    paid_date    INTEGER NOT NULL,
    reference    TEXT,
    recorded_at  INTEGER NOT NULL,
    recorded_by  TEXT NOT NULL,
    PRIMARY KEY (payment_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX payments_of_document ON payments (customer_id, document_id);

-- One counter per entity and kind of document, one per organization for contracts (kind CONTRACT, entity '').
-- A counter row rolls back with its transaction; a sequence would leave gaps.
CREATE TABLE number_series (
    organization_id BLOB NOT NULL,
    entity_ref      TEXT NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('INVOICE', 'CREDIT', 'DEBIT', 'CONTRACT')),
    last            INTEGER NOT NULL,
    -- Issued documents, and the hash of the last.
    chain_length    INTEGER NOT NULL,
    chain_head      BLOB NOT NULL,
    PRIMARY KEY (organization_id, entity_ref, kind)
) STRICT, WITHOUT ROWID;

-- Issued documents never change.
CREATE TRIGGER issued_documents_frozen_update BEFORE UPDATE ON issued_documents
BEGIN
    SELECT RAISE(ABORT, 'issued documents never change');
END;
CREATE TRIGGER issued_documents_frozen_delete BEFORE DELETE ON issued_documents
BEGIN
    SELECT RAISE(ABORT, 'issued documents never change');
END;
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

