-- PostgreSQL. References and names sort by their bytes (collation C), as on SQLite.

-- Access: organizations, and who acts for them. Passwords and keys are stored as hashes and digests only. All servers share the signing
-- secrets, so these stay readable.

CREATE TABLE organizations (
    organization_id    UUID NOT NULL PRIMARY KEY,
    name               TEXT COLLATE "C" NOT NULL,
    -- Bills where nothing else names an entity. The first entity created becomes the default.
    default_entity_ref TEXT COLLATE "C",
    created_at         TIMESTAMPTZ NOT NULL,
    -- The findings of the last `verify --record`.
    last_verification  TEXT,
    -- Identifies the state of the organization's entities and usage products in caches. Each update of one of them takes a new identifier.
    catalog_stamp      UUID NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
);
-- By digest, because a name can be longer than a B-tree entry. Lookups by name use the hash index.
CREATE UNIQUE INDEX organizations_name ON organizations (md5(name));
CREATE INDEX organizations_by_name ON organizations USING hash (name);

CREATE TABLE administrators (
    admin_id             UUID NOT NULL PRIMARY KEY,
    organization_id      UUID NOT NULL REFERENCES organizations (organization_id),
    -- In lower case. Unique across organizations: a log-in names no organization.
    email                TEXT COLLATE "C" NOT NULL,
    password_hash        TEXT NOT NULL,
    created_at           TIMESTAMPTZ NOT NULL,
    -- The last change of a column that the API shows.
    updated_at           TIMESTAMPTZ NOT NULL,
    -- Set: the administrator can't log in.
    disabled_at          TIMESTAMPTZ,
    role                 TEXT NOT NULL DEFAULT 'owner',
    -- A password set by somebody else works until this instant, and only for setting another.
    one_time_until       TIMESTAMPTZ,
    -- Encrypted. Required at log-in from `second_factor_since` on. Codes up to `second_factor_step` are used.
    second_factor_secret BYTEA,
    second_factor_since  TIMESTAMPTZ,
    second_factor_step   BIGINT,
    -- The SHA-256 of each unused recovery code, concatenated.
    recovery_digests     BYTEA,
    -- Codes of the device that were rejected since the last accepted code. At 100, only recovery codes are accepted.
    failed_codes         BIGINT NOT NULL DEFAULT 0 CHECK (failed_codes >= 0),
    -- Keyed hashes of the addresses of the last log-ins, 32 bytes each, concatenated.
    known_addresses      BYTEA NOT NULL DEFAULT '',
    CONSTRAINT administrators_role CHECK (role IN ('read', 'finance', 'operator', 'owner'))
);
CREATE UNIQUE INDEX administrators_email ON administrators (md5(email));
CREATE INDEX administrators_by_email ON administrators USING hash (email);

CREATE TABLE api_keys (
    api_key_id      UUID NOT NULL PRIMARY KEY,
    organization_id UUID NOT NULL REFERENCES organizations (organization_id),
    api_key         TEXT COLLATE "C" NOT NULL UNIQUE,
    password_digest BYTEA NOT NULL,
    name            TEXT,
    -- Words separated by spaces, in the order in which they are shown.
    scopes          TEXT NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    -- The last change, also of `last_used_at`.
    updated_at      TIMESTAMPTZ NOT NULL,
    last_used_at    TIMESTAMPTZ,
    expires_at      TIMESTAMPTZ,
    -- The key that replaces this one. Both work until `expires_at`.
    successor_id    UUID
);

CREATE TABLE sessions (
    digest          BYTEA NOT NULL PRIMARY KEY,
    -- Names the session in lists. The digest is a secret.
    session_id      UUID NOT NULL,
    admin_id        UUID NOT NULL,
    organization_id UUID NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    last_seen_at    TIMESTAMPTZ NOT NULL,
    -- When the administrator last entered the password.
    confirmed_at    TIMESTAMPTZ NOT NULL,
    user_agent      TEXT
);
CREATE UNIQUE INDEX sessions_by_id ON sessions (session_id);
CREATE INDEX sessions_by_admin ON sessions (admin_id);

-- Bearer tokens that were revoked before they expired. A row can be deleted once its token has expired.
CREATE TABLE revoked_tokens (
    token_id   UUID NOT NULL PRIMARY KEY,
    expires_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE signing_secrets (
    kid        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    purpose    TEXT NOT NULL CHECK (purpose IN ('BEARER_TOKEN', 'SESSION_COOKIE', 'SECOND_FACTOR')),
    secret     BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);

-- Catalog: customers, the entities that bill them, and products and prices. In a distributed database, customers are distributed with all
-- their data, and every node has a copy of the rest of the catalog.

CREATE TABLE entities (
    organization_id UUID NOT NULL REFERENCES organizations (organization_id),
    entity_ref      TEXT COLLATE "C" NOT NULL,
    name            TEXT NOT NULL,
    legal_name      TEXT,
    number_prefix   TEXT COLLATE "C" NOT NULL,
    time_zone       TEXT NOT NULL,
    currency        TEXT,
    address         JSON,
    tax_id          TEXT,
    -- A number of days, DUE_UPON_RECEIPT or DUE_UPON_USAGE.
    net_terms       TEXT,
    grace_hours     INTEGER NOT NULL CHECK (grace_hours BETWEEN 0 AND 720),
    payment         JSON NOT NULL,
    -- Legal particulars, default taxes with the day from which each applies, settings of printed documents, and units of credit by
    -- currency. NULL: none.
    legal           JSON,
    taxes           JSON,
    paper           JSON,
    credit_unit     JSON,
    created_at      TIMESTAMPTZ NOT NULL,
    updated_at      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (organization_id, entity_ref),
    UNIQUE (organization_id, number_prefix)
);

CREATE TABLE customers (
    customer_id     UUID NOT NULL PRIMARY KEY,
    organization_id UUID NOT NULL REFERENCES organizations (organization_id),
    customer_ref    TEXT COLLATE "C" NOT NULL,
    name            TEXT COLLATE "C" NOT NULL,
    legal_name      TEXT,
    email           TEXT,
    tax_id          TEXT,
    billing_address JSON,
    currency        TEXT,
    entity_ref      TEXT COLLATE "C",
    net_terms       TEXT,
    payment         JSON NOT NULL,
    -- Whether unapplied credit settles new documents.
    apply_balance   BOOLEAN NOT NULL DEFAULT TRUE,
    -- As in entities.
    legal           JSON,
    taxes           JSON,
    buyer_reference TEXT,
    -- Identifies the state of the row in caches. Each update takes a new identifier.
    stamp           UUID NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    -- Whether the customer may have limits.
    watched         BOOLEAN NOT NULL DEFAULT false,
    -- Null means the profile of the entity.
    e_invoice_profile TEXT,
    -- An object. The table metadata has its keys, too. NULL: none.
    metadata        JSON,
    created_at      TIMESTAMPTZ NOT NULL,
    updated_at      TIMESTAMPTZ NOT NULL,
    UNIQUE (organization_id, customer_ref)
);
-- A hash index, because a name can be longer than a B-tree entry. Lookups are for the whole name.
CREATE INDEX customers_by_name ON customers USING hash (name);
CREATE INDEX customers_by_creation ON customers (organization_id, created_at, customer_ref);
CREATE INDEX customers_by_update ON customers (organization_id, updated_at, customer_ref);
-- In the collation C `lower` changes the letters A to Z only, as on SQLite.
CREATE INDEX customers_by_lower_name ON customers (organization_id, lower(name COLLATE "C"), customer_ref);
CREATE INDEX customers_by_email ON customers (organization_id, lower(email COLLATE "C")) WHERE email IS NOT NULL;
CREATE INDEX customers_by_tax_id ON customers (organization_id, tax_id) WHERE tax_id IS NOT NULL;

-- The directory of customers: a reference to the customer's identifier, which never changes. In a distributed database it finds the node of
-- a customer, and enforces that references are unique.
CREATE TABLE customer_refs (
    organization_id UUID NOT NULL,
    customer_ref    TEXT COLLATE "C" NOT NULL,
    customer_id     UUID NOT NULL,
    PRIMARY KEY (organization_id, customer_ref)
);

CREATE TABLE usage_products (
    organization_id   UUID NOT NULL REFERENCES organizations (organization_id),
    usage_product_ref TEXT COLLATE "C" NOT NULL,
    name              TEXT COLLATE "C" NOT NULL,
    unit              TEXT,
    -- From UN/ECE Recommendations 20 and 21. C62 is one piece.
    unit_code         TEXT NOT NULL,
    aggregation       TEXT NOT NULL CHECK (aggregation IN ('SUM', 'COUNT', 'MAX', 'LATEST', 'UNIQUE')),
    -- The label whose distinct texts UNIQUE counts.
    unique_by         TEXT,
    created_at        TIMESTAMPTZ NOT NULL,
    updated_at        TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (organization_id, usage_product_ref)
);
CREATE INDEX usage_products_by_name ON usage_products USING hash (name);

CREATE TABLE pricings (
    organization_id UUID NOT NULL REFERENCES organizations (organization_id),
    pricing_ref     TEXT COLLATE "C" NOT NULL,
    name            TEXT NOT NULL,
    currency        TEXT NOT NULL,
    minimum_fee     NUMERIC,
    line_items      JSON NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    updated_at      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (organization_id, pricing_ref)
);

CREATE TABLE usage_formats (
    organization_id UUID NOT NULL REFERENCES organizations (organization_id),
    format_ref      TEXT COLLATE "C" NOT NULL,
    -- The name and number of the newest version.
    name            TEXT COLLATE "C" NOT NULL,
    version         INTEGER NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    updated_at      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (organization_id, format_ref)
);
CREATE UNIQUE INDEX usage_formats_name ON usage_formats (organization_id, md5(name));

-- A version never changes: an event names the version that mapped it.
CREATE TABLE usage_format_versions (
    organization_id UUID NOT NULL,
    format_ref      TEXT COLLATE "C" NOT NULL,
    version         INTEGER NOT NULL,
    name            TEXT COLLATE "C" NOT NULL,
    mapping         JSON NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    created_by      TEXT NOT NULL,
    PRIMARY KEY (organization_id, format_ref, version),
    FOREIGN KEY (organization_id, format_ref) REFERENCES usage_formats (organization_id, format_ref)
);

-- The words of the names, e-mail addresses and tax numbers of customers, and of the names of entities, usage products, pricings and
-- usage formats. The search reads them by their beginning. `kind` is the table of the object.
CREATE TABLE search_words (
    organization_id UUID NOT NULL,
    kind            TEXT COLLATE "C" NOT NULL,
    reference       TEXT COLLATE "C" NOT NULL,
    word            TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (organization_id, kind, reference, word)
);
CREATE INDEX search_words_by_word ON search_words (organization_id, word, kind, reference);

CREATE TABLE bank_accounts (
    organization_id UUID NOT NULL REFERENCES organizations (organization_id),
    account_ref     TEXT COLLATE "C" NOT NULL,
    account_name    TEXT,
    iban            TEXT,
    account_number  TEXT,
    routing_number  TEXT,
    bic             TEXT,
    bank_name       TEXT,
    created_at      TIMESTAMPTZ NOT NULL,
    updated_at      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (organization_id, account_ref),
    CHECK ((iban IS NULL) <> (account_number IS NULL))
);

-- Rates for showing tax in another currency.
CREATE TABLE exchange_rates (
    organization_id UUID NOT NULL REFERENCES organizations (organization_id),
    from_currency   TEXT COLLATE "C" NOT NULL,
    to_currency     TEXT COLLATE "C" NOT NULL,
    -- The first day on which the rate applies.
    day             DATE NOT NULL,
    rate            NUMERIC NOT NULL CHECK (rate > 0),
    created_at      TIMESTAMPTZ NOT NULL,
    updated_at      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (organization_id, from_currency, to_currency, day)
);

-- The images of logos. Entities and documents have only the hash. An image that a document names is never deleted.
CREATE TABLE logos (
    organization_id UUID NOT NULL REFERENCES organizations (organization_id),
    sha256          BYTEA NOT NULL,
    format          TEXT NOT NULL CHECK (format IN ('png', 'svg')),
    image           BYTEA NOT NULL,
    PRIMARY KEY (organization_id, sha256)
);

-- Contracts: chains of immutable versions. Every key includes the customer, by which tables are distributed.

CREATE TABLE contracts (
    contract_id      UUID NOT NULL,
    customer_id      UUID NOT NULL REFERENCES customers (customer_id),
    organization_id  UUID NOT NULL,
    number           BIGINT NOT NULL,
    po_number        TEXT,
    -- As in customers.
    metadata         JSON,
    -- The number of the newest version.
    version          INTEGER NOT NULL,
    -- Identifies the contract's terms in caches. Each change takes a new identifier, also one that is rolled back.
    terms_id         UUID NOT NULL,
    -- The first and last day that the newest version bills, and the entity whose time zone determines the contract's state: the entity in
    -- the newest terms of its first product. NULL where nothing is billed.
    first_day        DATE,
    last_day         DATE,
    entity_ref       TEXT COLLATE "C",
    created_at       TIMESTAMPTZ NOT NULL,
    -- When the newest version was created.
    updated_at       TIMESTAMPTZ NOT NULL,
    cancelled_at     TIMESTAMPTZ,
    -- When the contract next has a document to issue. NULL: never again.
    next_due_at      TIMESTAMPTZ,
    -- Identifies the state of the contract's terms and documents in caches. Each transaction that locks the contract exclusively takes a new
    -- identifier, also one that is rolled back. A counter would repeat its numbers after a failover that loses the last transactions.
    stamp            UUID NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    -- As in customers, so that usage reads it with the contract.
    watched          BOOLEAN NOT NULL DEFAULT false,
    -- The number of documents opened so far, from which a document takes its number in the contract.
    documents_opened INTEGER NOT NULL,
    -- The number of notifications about the contract.
    notification_count BIGINT NOT NULL DEFAULT 0 CHECK (notification_count >= 0),
    -- What the billing run could not bill, with the first documents and their codes as JSON, and when that was last told. NULL: it is
    -- billed.
    failures         JSON,
    failure_told_at  TIMESTAMPTZ,
    PRIMARY KEY (contract_id, customer_id)
);
CREATE INDEX contracts_of_customer ON contracts (customer_id, created_at, contract_id);
CREATE INDEX contracts_of_organization ON contracts (organization_id, contract_id);
CREATE INDEX contracts_due ON contracts (next_due_at, contract_id) WHERE next_due_at IS NOT NULL;
-- One index for each order and filter of the list.
CREATE INDEX contracts_by_creation ON contracts (organization_id, created_at, contract_id);
CREATE INDEX contracts_by_update ON contracts (organization_id, updated_at, contract_id);
CREATE INDEX contracts_by_number ON contracts (organization_id, number);
CREATE INDEX contracts_by_po_number ON contracts (organization_id, po_number, created_at, contract_id) WHERE po_number IS NOT NULL;
CREATE INDEX contracts_by_first_day ON contracts (organization_id, first_day);
CREATE INDEX contracts_by_last_day ON contracts (organization_id, last_day, contract_id);
CREATE INDEX contracts_cancelled ON contracts (organization_id, created_at, contract_id) WHERE cancelled_at IS NOT NULL;

CREATE TABLE contract_versions (
    contract_id UUID NOT NULL,
    customer_id UUID NOT NULL,
    version     INTEGER NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL,
    created_by  TEXT,
    po_number   TEXT,
    PRIMARY KEY (contract_id, customer_id, version),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id)
);

-- The terms of a product from a day on, as a version states them, or the reason why the product ends. From its day on a segment replaces
-- all segments of earlier versions, also those that begin on or after that day.
CREATE TABLE contract_products (
    contract_id   UUID NOT NULL,
    customer_id   UUID NOT NULL,
    product_no    INTEGER NOT NULL,
    in_force_from DATE NOT NULL,
    version       INTEGER NOT NULL,
    end_reason    TEXT CHECK (end_reason IN ('CANCELLED', 'REMOVED')),
    terms         JSON,
    PRIMARY KEY (contract_id, customer_id, product_no, version, in_force_from),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    CHECK ((end_reason IS NULL) <> (terms IS NULL))
);

-- The contracts and products that meter a usage product or ever did: where an event is matched first.
CREATE TABLE contract_usage_products (
    customer_id       UUID NOT NULL,
    usage_product_ref TEXT COLLATE "C" NOT NULL,
    contract_id       UUID NOT NULL,
    product_no        INTEGER NOT NULL,
    PRIMARY KEY (customer_id, usage_product_ref, contract_id, product_no),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id)
);

-- Documents: invoices, credits and debits, from draft to issued.

CREATE TABLE documents (
    document_id          UUID NOT NULL,
    customer_id          UUID NOT NULL,
    organization_id      UUID NOT NULL,
    contract_id          UUID NOT NULL,
    entity_ref           TEXT COLLATE "C" NOT NULL,
    kind                 TEXT NOT NULL CHECK (kind IN ('INVOICE', 'CREDIT', 'DEBIT')),
    -- The entity's prefix when the document took its number.
    number_prefix        TEXT NOT NULL,
    sequence             BIGINT NOT NULL,
    -- Always 0. Part of the unique index on numbers.
    number_copy          INTEGER NOT NULL DEFAULT 0,
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
    -- The purchase order number shown. A draft shows its contract's.
    po_number            TEXT COLLATE "C",
    -- The invoice that a credit, debit or child document belongs to.
    parent_document_id   UUID,
    -- The root of the document family: the invoice without a parent, or the document itself.
    family_document_id   UUID NOT NULL,
    -- The void document that this one bills again.
    replaces_document_id UUID,
    created_at           TIMESTAMPTZ NOT NULL,
    lifecycle            TEXT NOT NULL CHECK (lifecycle IN ('DRAFT', 'ISSUED', 'VOID', 'UNCOLLECTIBLE')),
    issue_date           DATE,
    due_date             DATE,
    voided_at            TIMESTAMPTZ,
    -- The entity's service date on which an issued document was voided.
    voided_on            DATE,
    -- The content of a draft when it was voided.
    discarded_content    JSON,
    -- The tax of an issued document in its entity's tax currency, with the exchange rate, if it was converted.
    converted_tax        JSON,
    -- Copies from the issued content, payments and applications, so that lists can filter by derived states.
    total_minor          BIGINT,
    paid_minor           BIGINT NOT NULL,
    credits_minor        BIGINT NOT NULL,
    -- The used and the unapplied amount of a credit, and the amount due of other documents.
    used_minor           BIGINT NOT NULL DEFAULT 0,
    unapplied_minor      BIGINT,
    amount_due_minor     BIGINT,
    paid_date            DATE,
    -- When the document was last opened, issued, voided, paid, credited, applied or written off. Of a draft, also when its period,
    -- products or charges, or its contract's version, last changed.
    updated_at           TIMESTAMPTZ NOT NULL,
    -- The number of notifications about the document.
    notification_count   BIGINT NOT NULL DEFAULT 0 CHECK (notification_count >= 0),
    PRIMARY KEY (document_id, customer_id),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    FOREIGN KEY (parent_document_id, customer_id) REFERENCES documents (document_id, customer_id),
    FOREIGN KEY (replaces_document_id, customer_id) REFERENCES documents (document_id, customer_id),
    CHECK ((purpose = 'REGULAR') = (slot IS NOT NULL)),
    CHECK (period_start < period_end),
    CHECK (lifecycle NOT IN ('ISSUED', 'UNCOLLECTIBLE') OR (issue_date IS NOT NULL AND total_minor IS NOT NULL))
);
CREATE UNIQUE INDEX documents_numbers ON documents (organization_id, number_prefix, kind, sequence, number_copy);
CREATE INDEX documents_of_contract ON documents (customer_id, contract_id, created_at, document_id);
CREATE INDEX documents_of_parent ON documents (customer_id, parent_document_id, purpose, kind) WHERE parent_document_id IS NOT NULL;
CREATE INDEX documents_of_family ON documents (customer_id, family_document_id);
-- For an account: documents to settle, oldest due date first, and credits to apply.
CREATE INDEX documents_due ON documents (customer_id, entity_ref, currency, due_date, document_id) WHERE amount_due_minor > 0;
CREATE INDEX documents_unapplied ON documents (customer_id, entity_ref, currency) WHERE unapplied_minor > 0;
-- One index for each order and filter of the list.
CREATE INDEX documents_of_organization ON documents (organization_id, created_at, document_id);
CREATE INDEX documents_of_customer ON documents (customer_id, created_at, document_id);
CREATE INDEX documents_of_entity ON documents (organization_id, entity_ref, created_at, document_id);
CREATE INDEX documents_by_period ON documents (organization_id, period_start, document_id);
-- With the columns that the sums by month of issue read.
CREATE INDEX documents_by_issue_date ON documents (organization_id, issue_date, document_id) INCLUDE (currency, kind, lifecycle, total_minor);
CREATE INDEX documents_by_void_date ON documents (organization_id, voided_on, document_id) INCLUDE (currency, kind, total_minor) WHERE voided_on IS NOT NULL;
-- Only issued invoices and debits have a due date. Other documents come last, by reference.
CREATE INDEX documents_by_due_date ON documents (organization_id, due_date, document_id) WHERE amount_due_minor IS NOT NULL;
CREATE INDEX documents_without_due_date ON documents (organization_id, document_id) WHERE amount_due_minor IS NULL;
CREATE INDEX documents_by_amount ON documents (organization_id, currency, total_minor, document_id) WHERE total_minor IS NOT NULL;
CREATE INDEX documents_by_update ON documents (organization_id, updated_at, document_id);
CREATE INDEX documents_by_po_number ON documents (organization_id, po_number, created_at, document_id) WHERE po_number IS NOT NULL;
-- Few documents have an amount due once most are paid.
CREATE INDEX documents_owed ON documents (organization_id, due_date, document_id) WHERE amount_due_minor > 0;
-- Most documents are issued regular invoices. These indexes find the others.
CREATE INDEX documents_drafts ON documents (customer_id, entity_ref, currency, contract_id) WHERE lifecycle = 'DRAFT';
CREATE INDEX documents_not_issued ON documents (organization_id, lifecycle, created_at, document_id) WHERE lifecycle <> 'ISSUED';
CREATE INDEX documents_no_invoices ON documents (organization_id, kind, created_at, document_id) WHERE kind <> 'INVOICE';
CREATE INDEX documents_not_regular ON documents (organization_id, purpose, created_at, document_id) WHERE purpose <> 'REGULAR';

-- The products on a document.
CREATE TABLE document_parts (
    document_id  UUID NOT NULL,
    customer_id  UUID NOT NULL,
    product_no   INTEGER NOT NULL,
    position     INTEGER NOT NULL,
    contract_id  UUID NOT NULL,
    period_start DATE NOT NULL,
    -- NULL on a document that doesn't bill a period.
    slot         TEXT CHECK (slot IN ('PERIOD', 'USAGE_DEBIT', 'CLOSING')),
    -- Whether the document is in force. A void document leaves its slot free.
    active       BOOLEAN NOT NULL,
    PRIMARY KEY (document_id, customer_id, product_no),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
);
-- A product's period is billed once: one document in force per slot.
CREATE UNIQUE INDEX document_parts_in_force ON document_parts (customer_id, contract_id, product_no, period_start, slot) WHERE active;

-- The lines of issued documents and open adjustments: what a service period was billed, and at which rates.
CREATE TABLE document_lines (
    document_id          UUID NOT NULL,
    customer_id          UUID NOT NULL,
    ordinal              INTEGER NOT NULL,
    contract_id          UUID NOT NULL,
    product_no           INTEGER NOT NULL,
    -- NULL: the true-up to the pricing's minimum fee.
    line_item_id         TEXT COLLATE "C",
    bill_with            TEXT NOT NULL CHECK (bill_with IN ('FIXED', 'USAGE')),
    -- The first day of the service period whose price the line is part of.
    billed_period_start  DATE NOT NULL,
    discount_rate        NUMERIC NOT NULL,
    tax_rate             NUMERIC NOT NULL,
    -- Tax category and reason as JSON. Empty where neither is stated.
    tax_basis            TEXT NOT NULL,
    -- Whether the tax follows a default of the customer or the entity.
    has_default_tax      BOOLEAN NOT NULL,
    usage_product_ref    TEXT COLLATE "C",
    -- The days shown.
    service_period_start DATE NOT NULL,
    service_period_end   DATE NOT NULL,
    quantity             NUMERIC,
    -- On an open adjustment: the sum of digests of the events whose change the line bills.
    event_changes        BIGINT NOT NULL DEFAULT 0,
    amount_minor         BIGINT NOT NULL,
    -- Whether the line is on an issued document.
    frozen               BOOLEAN NOT NULL,
    PRIMARY KEY (document_id, customer_id, ordinal),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
);
CREATE INDEX document_lines_of_service_period ON document_lines (customer_id, contract_id, product_no, billed_period_start);

-- Discount and tax billed by the issued documents of a family, with the amounts they are computed from. Credits count as negative.
CREATE TABLE family_sums (
    customer_id        UUID NOT NULL,
    family_document_id UUID NOT NULL,
    -- A sum of tax has −1 and a sum of prepaid credit −2, because a key has no NULL. Other sums are of discount at one discount rate and
    -- one tax.
    product_no         INTEGER NOT NULL,
    -- A decimal without trailing zeros, so that equal rates make one key. Empty for a sum of tax. The grant of a sum of prepaid credit.
    discount_rate      TEXT COLLATE "C" NOT NULL,
    -- Likewise without trailing zeros.
    tax_rate           TEXT COLLATE "C" NOT NULL,
    -- As in document_lines.
    tax_basis          TEXT COLLATE "C" NOT NULL,
    organization_id    UUID NOT NULL,
    base_minor         BIGINT NOT NULL,
    amount_minor       BIGINT NOT NULL,
    PRIMARY KEY (customer_id, family_document_id, product_no, discount_rate, tax_rate, tax_basis),
    FOREIGN KEY (family_document_id, customer_id) REFERENCES documents (document_id, customer_id)
);

-- The content of issued documents, kept to the byte. Each hash includes the previous one of its series.
CREATE TABLE issued_documents (
    document_id     UUID NOT NULL,
    customer_id     UUID NOT NULL,
    organization_id UUID NOT NULL,
    entity_ref      TEXT COLLATE "C" NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('INVOICE', 'CREDIT', 'DEBIT')),
    -- Counts the issued documents of the series from 1, in the order of their issue.
    chain_position  BIGINT NOT NULL,
    previous_hash   BYTEA NOT NULL,
    content_hash    BYTEA NOT NULL,
    -- Text, because JSON keeps its bytes in PostgreSQL but not in all databases that speak its protocol.
    content         TEXT NOT NULL,
    issued_at       TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (document_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
);
CREATE INDEX issued_documents_chain ON issued_documents (organization_id, entity_ref, kind, chain_position);

-- Files generated from issued documents on the first request, and unchanged from then on.
CREATE TABLE document_files (
    document_id UUID NOT NULL,
    customer_id UUID NOT NULL,
    file        TEXT COLLATE "C" NOT NULL CHECK (file IN ('PDF', 'UBL', 'CII')),
    bytes       BYTEA NOT NULL,
    sha256      BYTEA NOT NULL,
    -- The program and release that generated the file.
    maker       TEXT NOT NULL,
    made_at     TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (document_id, customer_id, file),
    FOREIGN KEY (document_id, customer_id) REFERENCES issued_documents (document_id, customer_id)
);

-- A counter for each entity and kind of document, and one for each organization's contracts (kind CONTRACT, with the organization's id as
-- its entity_ref). A counter
-- row rolls back with its transaction. A sequence would leave gaps. The fill factor leaves room for updates in the same page (HOT).
CREATE TABLE number_series (
    organization_id UUID NOT NULL,
    entity_ref      TEXT COLLATE "C" NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('INVOICE', 'CREDIT', 'DEBIT', 'CONTRACT')),
    -- The prefix of its numbers. It cannot change after the first number.
    prefix          TEXT NOT NULL,
    last            BIGINT NOT NULL,
    -- The number of issued documents, and the hash of the last one.
    chain_length    BIGINT NOT NULL,
    chain_head      BYTEA NOT NULL,
    PRIMARY KEY (organization_id, entity_ref, kind)
) WITH (fillfactor = 50);

-- Money: payments and refunds, and how payments and credits settle documents.

-- An account for each customer, entity and currency. A transaction that changes amounts locks it.
CREATE TABLE accounts (
    customer_id     UUID NOT NULL,
    entity_ref      TEXT COLLATE "C" NOT NULL,
    currency        TEXT COLLATE "C" NOT NULL,
    organization_id UUID NOT NULL,
    -- The unapplied amount is unapplied_minor + unapplied_high * 10^18, because it can exceed 64 bits.
    unapplied_minor BIGINT NOT NULL CHECK (unapplied_minor >= 0),
    unapplied_high  BIGINT NOT NULL DEFAULT 0 CHECK (unapplied_high >= 0),
    PRIMARY KEY (customer_id, entity_ref, currency)
) WITH (fillfactor = 70);
CREATE INDEX accounts_of_organization ON accounts (organization_id, customer_id, entity_ref, currency);

-- The largest numbers up to which usage of customers is accepted.
CREATE TABLE limits (
    limit_id        UUID NOT NULL,
    customer_id     UUID NOT NULL,
    organization_id UUID NOT NULL,
    metric          TEXT NOT NULL CHECK (metric IN ('OWED', 'PREPAID', 'SPEND', 'QUANTITY')),
    -- OWED: the account whose amounts are counted. SPEND: the currency of the price.
    entity_ref      TEXT COLLATE "C",
    currency        TEXT COLLATE "C",
    -- SPEND and QUANTITY: the product whose service periods are counted.
    contract_id     UUID,
    product_no      INTEGER,
    -- QUANTITY: what is counted.
    usage_product_ref TEXT COLLATE "C",
    line_item_id    TEXT COLLATE "C",
    max             NUMERIC,
    -- A JSON array of decimals, in ascending order.
    thresholds      JSON NOT NULL,
    -- What notifications stated: the period, the number of thresholds, and where the maximum was reached.
    reached_in      DATE,
    reached         INTEGER NOT NULL,
    max_reached_at  NUMERIC,
    notification_count BIGINT NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    updated_at      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (limit_id, customer_id)
);
CREATE INDEX limits_of_customer ON limits (customer_id);
CREATE INDEX limits_of_organization ON limits (organization_id, created_at, limit_id);

-- Usage that is about to happen, and that limits count while it is open. The entries of a hold are its rows.
CREATE TABLE usage_holds (
    customer_id     UUID NOT NULL,
    hold_ref        TEXT COLLATE "C" NOT NULL,
    entry_no        INTEGER NOT NULL,
    organization_id UUID NOT NULL,
    -- The running total in which the entry counts.
    contract_id     UUID NOT NULL,
    product_no      INTEGER NOT NULL,
    period_start    DATE NOT NULL,
    usage_product_ref TEXT COLLATE "C" NOT NULL,
    -- Empty without a line item.
    line_item_id    TEXT COLLATE "C" NOT NULL,
    quantity        NUMERIC NOT NULL,
    -- The request for the hold.
    digest          BYTEA NOT NULL,
    made_at         TIMESTAMPTZ NOT NULL,
    expires_at      TIMESTAMPTZ NOT NULL,
    ended_at        TIMESTAMPTZ,
    -- The event that settled the entry.
    event_id        UUID,
    PRIMARY KEY (customer_id, hold_ref, entry_no)
);
CREATE INDEX usage_holds_open ON usage_holds (customer_id, expires_at) WHERE ended_at IS NULL;
CREATE INDEX usage_holds_expired ON usage_holds (expires_at);

-- Prepaid credit that customers bought or were given. Documents take it before tax.
CREATE TABLE credit_grants (
    grant_id        UUID NOT NULL,
    customer_id     UUID NOT NULL,
    organization_id UUID NOT NULL,
    entity_ref      TEXT COLLATE "C" NOT NULL,
    currency        TEXT COLLATE "C" NOT NULL,
    amount_minor    BIGINT NOT NULL CHECK (amount_minor > 0),
    -- The sum of the grant's draws.
    drawn_minor     BIGINT NOT NULL CHECK (drawn_minor >= 0),
    name            TEXT NOT NULL,
    -- The days of the service that the credit covers, both inclusive.
    valid_from      DATE,
    valid_to        DATE,
    -- NULL: every contract.
    contract_id     UUID,
    -- The invoice that sold the credit, its net amount and its tax as in family_sums. NULL for given credit.
    source_document_id UUID,
    source_net_minor   BIGINT,
    source_tax_rate    TEXT COLLATE "C",
    source_tax_basis   TEXT COLLATE "C",
    notification_count BIGINT NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    updated_at      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (grant_id, customer_id),
    FOREIGN KEY (source_document_id, customer_id) REFERENCES documents (document_id, customer_id)
);
-- Each event of a customer with credit reads these.
CREATE INDEX credit_grants_open ON credit_grants (customer_id) WHERE drawn_minor < amount_minor;
-- An invoice sells one grant. The document comes first, because a list of sales can be of many customers.
CREATE UNIQUE INDEX credit_grants_sold ON credit_grants (source_document_id, customer_id) WHERE source_document_id IS NOT NULL;
CREATE INDEX credit_grants_of_customer ON credit_grants (customer_id, created_at, grant_id);
CREATE INDEX credit_grants_of_organization ON credit_grants (organization_id, created_at, grant_id);

-- What issued documents took of grants. An amount below zero is a return.
CREATE TABLE credit_draws (
    document_id     UUID NOT NULL,
    customer_id     UUID NOT NULL,
    draw_no         INTEGER NOT NULL,
    organization_id UUID NOT NULL,
    grant_id        UUID NOT NULL,
    -- As in family_sums.
    tax_rate        TEXT COLLATE "C" NOT NULL,
    tax_basis       TEXT COLLATE "C" NOT NULL,
    amount_minor    BIGINT NOT NULL,
    recorded_at     TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (document_id, customer_id, draw_no),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id),
    FOREIGN KEY (grant_id, customer_id) REFERENCES credit_grants (grant_id, customer_id)
);
CREATE INDEX credit_draws_of_grant ON credit_draws (grant_id, recorded_at, document_id, draw_no);
CREATE INDEX credit_draws_of_customer ON credit_draws (customer_id, recorded_at, document_id, draw_no);
CREATE INDEX credit_draws_of_organization ON credit_draws (organization_id, recorded_at, document_id, draw_no);

CREATE TABLE payments (
    payment_id      UUID NOT NULL,
    customer_id     UUID NOT NULL,
    organization_id UUID NOT NULL,
    entity_ref      TEXT COLLATE "C" NOT NULL,
    currency        TEXT COLLATE "C" NOT NULL,
    -- NULL for a deposit.
    document_id     UUID,
    kind            TEXT NOT NULL DEFAULT 'PAYMENT' CHECK (kind IN ('PAYMENT', 'REFUND')),
    amount_minor    BIGINT NOT NULL,
    paid_date       DATE NOT NULL,
    -- The document or payment that a refund pays out.
    of_document_id  UUID,
    of_payment_id   UUID,
    method          TEXT,
    reference       TEXT,
    -- As in customers.
    metadata        JSON,
    -- The applied and refunded amount of a payment, and the rest.
    used_minor      BIGINT NOT NULL DEFAULT 0,
    unapplied_minor BIGINT NOT NULL DEFAULT 0,
    recorded_at     TIMESTAMPTZ NOT NULL,
    recorded_by     TEXT NOT NULL,
    -- When the payment was last recorded, reversed, applied or refunded.
    updated_at      TIMESTAMPTZ NOT NULL,
    reversed_on     DATE,
    reversal_reason TEXT,
    reversed_at     TIMESTAMPTZ,
    reversed_by     TEXT,
    PRIMARY KEY (payment_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id),
    CHECK ((kind = 'REFUND') = ((of_document_id IS NULL) <> (of_payment_id IS NULL))),
    CHECK ((reversed_on IS NULL) = (reversed_at IS NULL) AND (reversed_on IS NULL) = (reversed_by IS NULL))
);
CREATE INDEX payments_of_document ON payments (customer_id, document_id);
CREATE INDEX payments_unapplied ON payments (customer_id, entity_ref, currency) WHERE unapplied_minor > 0;
CREATE INDEX payments_by_date ON payments (organization_id, paid_date, payment_id);
CREATE INDEX payments_by_update ON payments (organization_id, updated_at, payment_id);
CREATE INDEX payments_by_reference ON payments (organization_id, reference) WHERE reference IS NOT NULL;

-- Amounts of credits and payments that settle a document. An application that is undone stays, with the actor and the time.
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

-- Amounts written off. A negative amount reduces an earlier write-off.
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

-- The metadata of customers, contracts and payments by key and value. The rows themselves have it, too.
CREATE TABLE metadata (
    organization_id UUID NOT NULL,
    kind            TEXT COLLATE "C" NOT NULL CHECK (kind IN ('CUSTOMER', 'CONTRACT', 'PAYMENT')),
    key             TEXT COLLATE "C" NOT NULL,
    value           TEXT COLLATE "C" NOT NULL,
    customer_id     UUID NOT NULL,
    subject_id      UUID NOT NULL,
    PRIMARY KEY (organization_id, kind, key, value, customer_id, subject_id)
);

-- Charges: amounts billed by hand, with manual credits among them.

-- The newest revision of each charge, also of deleted ones.
CREATE TABLE charges (
    charge_ref      TEXT COLLATE "C" NOT NULL,
    customer_id     UUID NOT NULL,
    organization_id UUID NOT NULL,
    contract_id     UUID NOT NULL,
    product_no      INTEGER NOT NULL,
    -- The day that determines the period in which the charge is billed.
    charged_on      DATE NOT NULL,
    name            TEXT NOT NULL,
    quantity        NUMERIC NOT NULL,
    unit_price      NUMERIC NOT NULL,
    unit            TEXT,
    currency        TEXT NOT NULL,
    bill_with       TEXT NOT NULL CHECK (bill_with IN ('FIXED', 'USAGE')),
    discountable    BOOLEAN NOT NULL,
    goods           BOOLEAN NOT NULL,
    note            TEXT,
    reason          TEXT,
    recorded_at     TIMESTAMPTZ NOT NULL,
    revision        INTEGER NOT NULL,
    revised_at      TIMESTAMPTZ NOT NULL,
    revised_by      TEXT NOT NULL,
    deleted         BOOLEAN NOT NULL,
    PRIMARY KEY (customer_id, charge_ref),
    UNIQUE (organization_id, charge_ref),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id)
);
CREATE INDEX charges_of_contract ON charges (customer_id, contract_id);
CREATE INDEX charges_of_organization ON charges (organization_id, recorded_at, charge_ref);
CREATE INDEX charges_by_update ON charges (organization_id, revised_at, charge_ref);

-- Superseded revisions only.
CREATE TABLE charge_revisions (
    charge_ref      TEXT COLLATE "C" NOT NULL,
    customer_id     UUID NOT NULL,
    revision        INTEGER NOT NULL,
    organization_id UUID NOT NULL,
    contract_id     UUID NOT NULL,
    product_no      INTEGER NOT NULL,
    charged_on      DATE NOT NULL,
    name            TEXT NOT NULL,
    quantity        NUMERIC NOT NULL,
    unit_price      NUMERIC NOT NULL,
    unit            TEXT,
    currency        TEXT NOT NULL,
    bill_with       TEXT NOT NULL CHECK (bill_with IN ('FIXED', 'USAGE')),
    discountable    BOOLEAN NOT NULL,
    goods           BOOLEAN NOT NULL,
    note            TEXT,
    reason          TEXT,
    recorded_at     TIMESTAMPTZ NOT NULL,
    revised_at      TIMESTAMPTZ NOT NULL,
    revised_by      TEXT NOT NULL,
    deleted         BOOLEAN NOT NULL,
    PRIMARY KEY (customer_id, charge_ref, revision),
    FOREIGN KEY (customer_id, charge_ref) REFERENCES charges (customer_id, charge_ref)
);
CREATE INDEX charge_revisions_of_organization ON charge_revisions (organization_id, charge_ref, revision);

-- Usage: events, their revisions and their running totals. Recording an event is the most frequent write.

-- Every group of events updates its totals. The fill factor leaves room for updates in the same page (HOT).
CREATE TABLE usage_totals (
    customer_id         UUID NOT NULL,
    contract_id         UUID NOT NULL,
    product_no          INTEGER NOT NULL,
    -- The first day of the service period.
    period_start        DATE NOT NULL,
    usage_product_ref   TEXT COLLATE "C" NOT NULL,
    -- The line item that counts the events. Empty if no line item of the usage product has `where` or `rest`.
    line_item_id        TEXT COLLATE "C" NOT NULL DEFAULT '',
    organization_id     UUID NOT NULL,
    sum                 NUMERIC NOT NULL,
    events              BIGINT NOT NULL,
    -- NULL although there are events: unknown until they are counted again. The same applies to the latest event.
    max                 NUMERIC,
    latest_at           TIMESTAMPTZ,
    latest_service_date DATE,
    latest_event_id     UUID,
    latest_quantity     NUMERIC,
    -- The latest service date of all events. A time zone that moved west can make it later than `latest_service_date`.
    last_day            DATE,
    -- The number of distinct texts of the label that UNIQUE counts. NULL if no line item counts a label.
    distinct_values     BIGINT,
    PRIMARY KEY (customer_id, contract_id, product_no, period_start, usage_product_ref, line_item_id),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    CHECK ((latest_at IS NULL) = (latest_event_id IS NULL) AND (latest_at IS NULL) = (latest_quantity IS NULL)
        AND (latest_at IS NULL) = (latest_service_date IS NULL))
) WITH (fillfactor = 50);

-- The newest revision of each event. The organization is the customer's.
-- There is no foreign key to documents: it would read and lock a document's row for every event. The contract is locked when an event is
-- inserted, the insert checks that drafts are drafts, and `verify` finds events whose document does not exist.
CREATE TABLE usage_events (
    event_id             UUID NOT NULL,
    customer_id          UUID NOT NULL,
    contract_id          UUID NOT NULL,
    product_no           INTEGER NOT NULL,
    usage_product_ref    TEXT COLLATE "C" NOT NULL,
    service_start        DATE NOT NULL,
    -- The day after the last.
    service_end          DATE NOT NULL,
    -- The document of the newest revision.
    document_id          UUID NOT NULL,
    -- The document named in the response to the event's key. NULL: document_id.
    answered_document_id UUID,
    -- The contract product that the event was first matched to. NULL: contract_id and product_no.
    first_contract_id    UUID,
    first_product_no     INTEGER,
    -- The first 16 bytes of the SHA-256 of the label that UNIQUE counts. NULL if the terms count no label.
    unique_digest        UUID,
    occurred_at          TIMESTAMPTZ NOT NULL,
    service_date         DATE NOT NULL,
    quantity             NUMERIC NOT NULL,
    -- Text, as the content of issued documents. `raw_event` is the event as submitted.
    report_data          TEXT,
    validations          JSON,
    format_ref           TEXT COLLATE "C",
    format_version       INTEGER,
    raw_event            TEXT,
    recorded_at          TIMESTAMPTZ NOT NULL,
    revision             INTEGER NOT NULL,
    revised_at           TIMESTAMPTZ NOT NULL,
    revised_by           TEXT NOT NULL,
    deleted              BOOLEAN NOT NULL,
    PRIMARY KEY (event_id, customer_id)
);
-- Each index here slows down every event, so there are only two for all events. This one finds the events of a service period, to count them again, and
-- those of a document by stepping from period to period.
CREATE INDEX usage_events_of_period ON usage_events (customer_id, contract_id, product_no, service_start, document_id);
-- Lists and counts of all events by time read this index. It takes less time per event than the index above: events arrive nearly in the
-- order of time, so those of a group are next to each other.
CREATE INDEX usage_events_by_time ON usage_events (occurred_at, event_id) WHERE NOT deleted;
-- Only events with a digest are in this index, which tells whether a text of a label is already counted.
CREATE INDEX usage_events_by_label ON usage_events
    (customer_id, contract_id, product_no, service_start, usage_product_ref, unique_digest)
    WHERE NOT deleted AND unique_digest IS NOT NULL;

-- Superseded revisions only, so that an event that never changes takes one row.
CREATE TABLE usage_event_revisions (
    event_id          UUID NOT NULL,
    customer_id       UUID NOT NULL,
    revision          INTEGER NOT NULL,
    contract_id       UUID NOT NULL,
    product_no        INTEGER NOT NULL,
    usage_product_ref TEXT COLLATE "C" NOT NULL,
    service_start     DATE NOT NULL,
    service_end       DATE NOT NULL,
    document_id       UUID NOT NULL,
    occurred_at       TIMESTAMPTZ NOT NULL,
    service_date      DATE NOT NULL,
    quantity          NUMERIC NOT NULL,
    report_data       TEXT,
    validations       JSON,
    format_ref        TEXT COLLATE "C",
    format_version    INTEGER,
    raw_event         TEXT,
    recorded_at       TIMESTAMPTZ NOT NULL,
    revised_at        TIMESTAMPTZ NOT NULL,
    revised_by        TEXT NOT NULL,
    deleted           BOOLEAN NOT NULL,
    -- Whether the issued document bills this revision: the document was issued when the next revision was recorded, and it bills no
    -- earlier revision.
    billed            BOOLEAN NOT NULL,
    PRIMARY KEY (event_id, customer_id, revision),
    FOREIGN KEY (event_id, customer_id) REFERENCES usage_events (event_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
);
-- The billed revisions of events that changed after their document was issued.
CREATE INDEX usage_event_revisions_billed ON usage_event_revisions (customer_id, document_id) WHERE billed;

-- Kept forever, because a key has at most one effect and its response is replayed byte for byte. Rows are short for that reason.
CREATE TABLE usage_event_keys (
    customer_id UUID NOT NULL,
    -- The first 16 bytes of the SHA-256 of the key. `body_digest` has those of the request. A UUID is the shortest type of 16 bytes.
    key_digest  UUID NOT NULL,
    event_id    UUID NOT NULL,
    body_digest UUID NOT NULL,
    -- NULL: the response names the event, its document and the document's number, and nothing else.
    answer      TEXT,
    PRIMARY KEY (customer_id, key_digest),
    FOREIGN KEY (event_id, customer_id) REFERENCES usage_events (event_id, customer_id)
);

-- Rejected usage, counted by reason. All servers add to the same rows. Kept for 90 days.
CREATE TABLE refused_usage (
    organization_id   UUID NOT NULL,
    day               DATE NOT NULL,
    code              TEXT COLLATE "C" NOT NULL,
    customer_ref      TEXT COLLATE "C" NOT NULL,
    usage_product_ref TEXT COLLATE "C" NOT NULL,
    count             BIGINT NOT NULL CHECK (count > 0),
    first_at          TIMESTAMPTZ NOT NULL,
    last_at           TIMESTAMPTZ NOT NULL,
    example           TEXT NOT NULL,
    PRIMARY KEY (organization_id, day, code, customer_ref, usage_product_ref)
);
-- Finds expired rows.
CREATE INDEX refused_usage_by_day ON refused_usage (day);

-- Imported usage files, and the progress of undoing them. Kept for 400 days.
CREATE TABLE usage_imports (
    organization_id UUID NOT NULL,
    import_id       UUID NOT NULL,
    file_name       TEXT,
    bytes           BIGINT NOT NULL,
    sha256          BYTEA NOT NULL,
    actor           TEXT NOT NULL,
    request_id      TEXT,
    begun_at        TIMESTAMPTZ NOT NULL,
    ended_at        TIMESTAMPTZ,
    updated_at      TIMESTAMPTZ NOT NULL,
    stopped_at_line BIGINT,
    recorded        BIGINT NOT NULL,
    updated         BIGINT NOT NULL,
    already_there   BIGINT NOT NULL,
    refused         BIGINT NOT NULL,
    skipped         BIGINT NOT NULL,
    documents       TEXT NOT NULL,
    more_documents  BIGINT NOT NULL,
    undone          TEXT,
    PRIMARY KEY (organization_id, import_id)
);
CREATE INDEX usage_imports_by_time ON usage_imports (organization_id, begun_at, import_id);
-- Finds expired rows.
CREATE INDEX usage_imports_by_age ON usage_imports (begun_at);

-- The events that undoing an import deletes. Each takes 32 bytes: its id, and the digest of its key. An event without a key has 16 zero
-- bytes as its digest.
CREATE TABLE usage_import_events (
    organization_id UUID NOT NULL,
    import_id       UUID NOT NULL,
    part_id         UUID NOT NULL,
    events          BYTEA NOT NULL,
    PRIMARY KEY (organization_id, import_id, part_id)
);

-- Records: billing runs, responses to replay, and the audit log.

-- Billing runs, each with the first of its documents and failures. Kept for 400 days.
CREATE TABLE billing_runs (
    organization_id UUID NOT NULL,
    run_id          UUID NOT NULL,
    actor           TEXT NOT NULL,
    request_id      TEXT,
    begun_at        TIMESTAMPTZ NOT NULL,
    ended_at        TIMESTAMPTZ,
    updated_at      TIMESTAMPTZ NOT NULL,
    cut_short       BOOLEAN NOT NULL,
    contracts       BIGINT NOT NULL,
    issued          BIGINT NOT NULL,
    voided          BIGINT NOT NULL,
    failed          BIGINT NOT NULL,
    documents       TEXT NOT NULL,
    failures        TEXT NOT NULL,
    PRIMARY KEY (organization_id, run_id)
);
CREATE INDEX billing_runs_by_time ON billing_runs (organization_id, begun_at, run_id);
-- Finds expired rows.
CREATE INDEX billing_runs_by_age ON billing_runs (begun_at);

-- Idempotency records: requests that succeeded under an Idempotency-Key, with their responses. The keys of usage events are in
-- usage_event_keys. Kept for 7 days.
CREATE TABLE replay_log (
    organization_id UUID NOT NULL,
    path            TEXT COLLATE "C" NOT NULL,
    idempotency_key TEXT COLLATE "C" NOT NULL,
    body_hash       BYTEA NOT NULL,
    -- Bytes that only the interface which wrote them interprets.
    answer          BYTEA NOT NULL,
    kept_at         TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (organization_id, path, idempotency_key)
);
-- Finds expired rows, oldest first.
CREATE INDEX replay_log_by_age ON replay_log (kept_at);

-- Append-only. Each entry is written in the transaction of its change.
CREATE TABLE audit_log (
    audit_id        UUID NOT NULL,
    organization_id UUID NOT NULL,
    -- The customer that the entry is about, otherwise the organization. In a distributed database, the entry is on the node of its change.
    beside          UUID NOT NULL,
    at              TIMESTAMPTZ NOT NULL,
    actor           TEXT NOT NULL,
    action          TEXT NOT NULL,
    -- The kind of the object and its reference, separated by a space.
    subject         TEXT NOT NULL,
    before          TEXT,
    after           TEXT,
    request_id      TEXT,
    PRIMARY KEY (audit_id, beside)
);
-- Newest first: all entries, those of an object, those of an actor, and those of a request.
CREATE INDEX audit_log_by_time ON audit_log (organization_id, at, audit_id);
CREATE INDEX audit_log_by_subject ON audit_log (organization_id, subject, at, audit_id);
CREATE INDEX audit_log_by_actor ON audit_log (organization_id, actor, at, audit_id);
CREATE INDEX audit_log_by_request ON audit_log (organization_id, request_id) WHERE request_id IS NOT NULL;

-- Notifications: facts for other software, and their delivery to webhooks.

-- A fact about a subject: a document, contract, account, limit or webhook endpoint. Written in the transaction of the change. Kept for 30
-- days (--notification-days). Bodies have up to 16 KiB.
CREATE TABLE notifications (
    notification_id UUID NOT NULL,
    -- The organization where the subject belongs to no customer.
    customer_id     UUID NOT NULL,
    organization_id UUID NOT NULL,
    -- The kind of the subject and its reference, separated by a colon.
    subject         TEXT COLLATE "C" NOT NULL,
    -- Counts the notifications of the subject from 1.
    sequence        BIGINT NOT NULL CHECK (sequence > 0),
    kind            TEXT COLLATE "C" NOT NULL,
    -- The bytes that webhooks send.
    body            TEXT NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    -- Counts the notifications of the organization from 1. NULL until the notification is numbered.
    position        BIGINT,
    PRIMARY KEY (customer_id, notification_id),
    UNIQUE (customer_id, subject, sequence)
);
CREATE INDEX notifications_by_position ON notifications (organization_id, position) WHERE position IS NOT NULL;
CREATE INDEX notifications_by_id ON notifications (organization_id, notification_id);
CREATE INDEX notifications_without_position ON notifications (organization_id, notification_id) WHERE position IS NULL;

-- The last position of each organization's notifications. One server at a time numbers them, as long as it has the lease.
CREATE TABLE notification_heads (
    organization_id UUID NOT NULL PRIMARY KEY,
    position        BIGINT NOT NULL CHECK (position >= 0),
    lease_by        UUID,
    lease_until     TIMESTAMPTZ,
    CHECK ((lease_by IS NULL) = (lease_until IS NULL))
);

-- A restore of the database from a backup. Positions of notifications continue from the epoch times 1,000,000.
CREATE TABLE restores (
    -- Seconds since 1970.
    epoch       BIGINT NOT NULL PRIMARY KEY CHECK (epoch > 0),
    -- An instant up to which the restored database has everything.
    restored_to TIMESTAMPTZ NOT NULL
);

-- The billing clock of a sandbox. A database without this row is live.
CREATE TABLE sandbox (
    id  BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    now TIMESTAMPTZ NOT NULL
);

-- Notifications that time alone causes, with the instant at which the billing run looks at their subject again.
CREATE TABLE notices (
    customer_id     UUID NOT NULL,
    subject         TEXT COLLATE "C" NOT NULL,
    kind            TEXT COLLATE "C" NOT NULL,
    organization_id UUID NOT NULL,
    at              TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (customer_id, subject, kind)
);
CREATE INDEX notices_due ON notices (at, organization_id);

-- URLs to which notifications are sent.
CREATE TABLE webhook_endpoints (
    organization_id    UUID NOT NULL,
    endpoint_id        UUID NOT NULL,
    url                TEXT NOT NULL,
    -- A list of types. A type is exact, `document.*` or `*`.
    event_types        JSON NOT NULL,
    -- A list. NULL: notifications of all customers, and those of no customer.
    customer_refs      JSON,
    description        TEXT,
    enabled            BOOLEAN NOT NULL,
    -- Why the service disabled the endpoint: FAILING or GONE.
    disabled_reason    TEXT CHECK (disabled_reason IN ('FAILING', 'GONE')),
    -- Nothing is sent before this instant. `pauses` counts the pauses since the last success.
    paused_until       TIMESTAMPTZ,
    pauses             INTEGER NOT NULL DEFAULT 0 CHECK (pauses >= 0),
    -- The first failure since the last success, and the number of failures since then.
    failing_since      TIMESTAMPTZ,
    failures           BIGINT NOT NULL DEFAULT 0 CHECK (failures >= 0),
    last_delivered_at  TIMESTAMPTZ,
    -- The number of notifications about the endpoint.
    notification_count BIGINT NOT NULL DEFAULT 0 CHECK (notification_count >= 0),
    created_at         TIMESTAMPTZ NOT NULL,
    updated_at         TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (organization_id, endpoint_id)
);

-- The secrets by which an endpoint verifies signatures, encrypted. At most two at a time, of which the older one expires.
CREATE TABLE webhook_secrets (
    endpoint_id UUID NOT NULL,
    kid         TEXT NOT NULL,
    secret      BYTEA NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL,
    expires_at  TIMESTAMPTZ,
    PRIMARY KEY (endpoint_id, kid)
);

-- Notifications on their way to an endpoint. Deleted with their notifications.
CREATE TABLE webhook_deliveries (
    endpoint_id     UUID NOT NULL,
    notification_id UUID NOT NULL,
    organization_id UUID NOT NULL,
    -- As in notifications, to find the body.
    customer_id     UUID NOT NULL,
    position        BIGINT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('PENDING', 'DELIVERED', 'FAILED', 'CANCELLED')),
    -- The number of attempts.
    attempt         INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    -- When the next attempt is due. NULL unless PENDING.
    due_at          TIMESTAMPTZ,
    -- The server that sends the delivery, until the lease expires. The delivery is due again then.
    lease_by        UUID,
    lease_until     TIMESTAMPTZ,
    -- The last 10 attempts.
    attempts        JSON NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    updated_at      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (endpoint_id, notification_id),
    CHECK ((state = 'PENDING') = (due_at IS NOT NULL)),
    CHECK ((lease_by IS NULL) = (lease_until IS NULL))
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_at, position) WHERE state = 'PENDING';
CREATE INDEX webhook_deliveries_leased ON webhook_deliveries (endpoint_id, lease_until) WHERE lease_by IS NOT NULL;
CREATE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries (endpoint_id, state, position);
CREATE INDEX webhook_deliveries_by_position ON webhook_deliveries (organization_id, position, endpoint_id);

-- Triggers: issued documents, their lines and files, and the audit log never change. The trigger of lines reads only its own row. A line
-- added to an issued document is found by `verify`, which compares lines with the issued content.

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% never changes', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE FUNCTION refuse_change_of_issued_lines() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'lines of issued documents never change' USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER issued_documents_frozen BEFORE UPDATE OR DELETE ON issued_documents
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER issued_documents_kept BEFORE TRUNCATE ON issued_documents
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER document_lines_frozen BEFORE UPDATE OR DELETE ON document_lines
    FOR EACH ROW WHEN (OLD.frozen) EXECUTE FUNCTION refuse_change_of_issued_lines();
CREATE TRIGGER document_files_frozen BEFORE UPDATE OR DELETE ON document_files
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER document_files_kept BEFORE TRUNCATE ON document_files
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER logos_frozen BEFORE UPDATE OR DELETE ON logos
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER logos_kept BEFORE TRUNCATE ON logos
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_frozen BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_kept BEFORE TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
