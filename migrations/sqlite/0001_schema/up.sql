-- SQLite. Identifiers are 16 bytes, instants microseconds and days whole days since 1970-01-01 UTC. Exact decimals are text: SQL never
-- compares, sorts or sums them. Small rows are in the index of their key (WITHOUT ROWID).

-- Access: organizations, and who acts for them. Passwords and keys are stored as hashes and digests only. All servers share the signing
-- secrets, so these stay readable.

CREATE TABLE organizations (
    organization_id    BLOB NOT NULL PRIMARY KEY,
    name               TEXT NOT NULL UNIQUE,
    -- Bills where nothing else names an entity. The first entity created becomes the default.
    default_entity_ref TEXT,
    created_at         INTEGER NOT NULL,
    -- The findings of the last `verify --record`.
    last_verification  TEXT,
    -- Identifies the state of the organization's entities and usage products in caches. Each update of one of them takes a new identifier.
    catalog_stamp      BLOB NOT NULL DEFAULT x'00000000000000000000000000000000'
) STRICT, WITHOUT ROWID;

CREATE TABLE administrators (
    admin_id             BLOB NOT NULL PRIMARY KEY,
    organization_id      BLOB NOT NULL REFERENCES organizations (organization_id),
    -- In lower case. Unique across organizations: a log-in names no organization.
    email                TEXT NOT NULL UNIQUE,
    password_hash        TEXT NOT NULL,
    created_at           INTEGER NOT NULL,
    -- The last change of a column that the API shows.
    updated_at           INTEGER NOT NULL,
    -- Set: the administrator can't log in.
    disabled_at          INTEGER,
    role                 TEXT NOT NULL DEFAULT 'owner' CHECK (role IN ('read', 'finance', 'operator', 'owner')),
    -- A password set by somebody else works until this instant, and only for setting another.
    one_time_until       INTEGER,
    -- Encrypted. Required at log-in from `second_factor_since` on. Codes up to `second_factor_step` are used.
    second_factor_secret BLOB,
    second_factor_since  INTEGER,
    second_factor_step   INTEGER,
    -- The SHA-256 of each unused recovery code, concatenated.
    recovery_digests     BLOB,
    -- Codes of the device that were rejected since the last accepted code. At 100, only recovery codes are accepted.
    failed_codes         INTEGER NOT NULL DEFAULT 0 CHECK (failed_codes >= 0),
    -- Keyed hashes of the addresses of the last log-ins, 32 bytes each, concatenated.
    known_addresses      BLOB NOT NULL DEFAULT x''
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
    api_key_id      BLOB NOT NULL PRIMARY KEY,
    organization_id BLOB NOT NULL REFERENCES organizations (organization_id),
    api_key         TEXT NOT NULL UNIQUE,
    password_digest BLOB NOT NULL,
    name            TEXT,
    -- Words separated by spaces, in the order in which they are shown.
    scopes          TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    -- The last change, also of `last_used_at`.
    updated_at      INTEGER NOT NULL,
    last_used_at    INTEGER,
    expires_at      INTEGER,
    -- The key that replaces this one. Both work until `expires_at`.
    successor_id    BLOB
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    digest          BLOB NOT NULL PRIMARY KEY,
    -- Names the session in lists. The digest is a secret.
    session_id      BLOB NOT NULL UNIQUE,
    admin_id        BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    created_at      INTEGER NOT NULL,
    last_seen_at    INTEGER NOT NULL,
    -- When the administrator last entered the password.
    confirmed_at    INTEGER NOT NULL,
    user_agent      TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_admin ON sessions (admin_id);

-- Bearer tokens that were revoked before they expired. A row can be deleted once its token has expired.
CREATE TABLE revoked_tokens (
    token_id   BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE signing_secrets (
    kid        TEXT NOT NULL PRIMARY KEY,
    purpose    TEXT NOT NULL CHECK (purpose IN ('BEARER_TOKEN', 'SESSION_COOKIE', 'SECOND_FACTOR')),
    secret     BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Catalog: customers, the entities that bill them, and products and prices. Small tables that everything refers to. In a distributed
-- database every node has a copy of them, and all other tables are distributed by customer.

CREATE TABLE entities (
    organization_id BLOB NOT NULL REFERENCES organizations (organization_id),
    entity_ref      TEXT NOT NULL,
    name            TEXT NOT NULL,
    legal_name      TEXT,
    number_prefix   TEXT NOT NULL,
    time_zone       TEXT NOT NULL,
    currency        TEXT,
    address         TEXT,
    tax_id          TEXT,
    -- A number of days, DUE_UPON_RECEIPT or DUE_UPON_USAGE.
    net_terms       TEXT,
    grace_hours     INTEGER NOT NULL CHECK (grace_hours BETWEEN 0 AND 720),
    payment         TEXT NOT NULL,
    -- Legal particulars, default taxes with the day from which each applies, settings of printed documents, and units of credit by
    -- currency. NULL: none.
    legal           TEXT,
    taxes           TEXT,
    paper           TEXT,
    credit_unit     TEXT,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, entity_ref),
    UNIQUE (organization_id, number_prefix)
) STRICT, WITHOUT ROWID;

CREATE TABLE customers (
    customer_id     BLOB NOT NULL PRIMARY KEY,
    organization_id BLOB NOT NULL REFERENCES organizations (organization_id),
    customer_ref    TEXT NOT NULL,
    name            TEXT NOT NULL,
    legal_name      TEXT,
    email           TEXT,
    tax_id          TEXT,
    billing_address TEXT,
    currency        TEXT,
    entity_ref      TEXT,
    net_terms       TEXT,
    payment         TEXT NOT NULL,
    -- Whether unapplied credit settles new documents.
    apply_balance   INTEGER NOT NULL DEFAULT 1,
    -- As in entities.
    legal           TEXT,
    taxes           TEXT,
    buyer_reference TEXT,
    -- Identifies the state of the row in caches. Each update takes a new identifier.
    stamp           BLOB NOT NULL DEFAULT x'00000000000000000000000000000000',
    -- Whether the customer may have limits.
    watched         INTEGER NOT NULL DEFAULT 0 CHECK (watched IN (0, 1)),
    -- Null means the profile of the entity.
    e_invoice_profile TEXT,
    -- An object. The table metadata has its keys, too. NULL: none.
    metadata        TEXT,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    UNIQUE (organization_id, customer_ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX customers_by_name ON customers (organization_id, name);
CREATE INDEX customers_by_creation ON customers (organization_id, created_at, customer_ref);
CREATE INDEX customers_by_update ON customers (organization_id, updated_at, customer_ref);
-- `lower` changes the letters A to Z only.
CREATE INDEX customers_by_lower_name ON customers (organization_id, lower(name), customer_ref);
CREATE INDEX customers_by_email ON customers (organization_id, lower(email)) WHERE email IS NOT NULL;
CREATE INDEX customers_by_tax_id ON customers (organization_id, tax_id) WHERE tax_id IS NOT NULL;

-- The directory of customers: a reference to the customer's identifier, which never changes. In a distributed database it finds the node of
-- a customer, and enforces that references are unique.
CREATE TABLE customer_refs (
    organization_id BLOB NOT NULL,
    customer_ref    TEXT NOT NULL,
    customer_id     BLOB NOT NULL,
    PRIMARY KEY (organization_id, customer_ref)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_products (
    organization_id   BLOB NOT NULL REFERENCES organizations (organization_id),
    usage_product_ref TEXT NOT NULL,
    name              TEXT NOT NULL,
    unit              TEXT,
    -- From UN/ECE Recommendations 20 and 21. C62 is one piece.
    unit_code         TEXT NOT NULL DEFAULT 'C62',
    aggregation       TEXT NOT NULL CHECK (aggregation IN ('SUM', 'COUNT', 'MAX', 'LATEST', 'UNIQUE')),
    -- The label whose distinct texts UNIQUE counts.
    unique_by         TEXT,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    PRIMARY KEY (organization_id, usage_product_ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_products_by_name ON usage_products (organization_id, name);

CREATE TABLE pricings (
    organization_id BLOB NOT NULL REFERENCES organizations (organization_id),
    pricing_ref     TEXT NOT NULL,
    name            TEXT NOT NULL,
    currency        TEXT NOT NULL,
    minimum_fee     TEXT,
    line_items      TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, pricing_ref)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_formats (
    organization_id BLOB NOT NULL REFERENCES organizations (organization_id),
    format_ref      TEXT NOT NULL,
    -- The name and number of the newest version.
    name            TEXT NOT NULL,
    version         INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, format_ref),
    UNIQUE (organization_id, name)
) STRICT, WITHOUT ROWID;

-- A version never changes: an event names the version that mapped it.
CREATE TABLE usage_format_versions (
    organization_id BLOB NOT NULL,
    format_ref      TEXT NOT NULL,
    version         INTEGER NOT NULL,
    name            TEXT NOT NULL,
    mapping         TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    created_by      TEXT NOT NULL,
    PRIMARY KEY (organization_id, format_ref, version),
    FOREIGN KEY (organization_id, format_ref) REFERENCES usage_formats (organization_id, format_ref)
) STRICT, WITHOUT ROWID;

-- The words of the names, e-mail addresses and tax numbers of customers, and of the names of entities, usage products, pricings and
-- usage formats. The search reads them by their beginning. `kind` is the table of the object.
CREATE TABLE search_words (
    organization_id BLOB NOT NULL,
    kind            TEXT NOT NULL,
    reference       TEXT NOT NULL,
    word            TEXT NOT NULL,
    PRIMARY KEY (organization_id, kind, reference, word)
) STRICT, WITHOUT ROWID;
CREATE INDEX search_words_by_word ON search_words (organization_id, word, kind, reference);

CREATE TABLE bank_accounts (
    organization_id BLOB NOT NULL REFERENCES organizations (organization_id),
    account_ref     TEXT NOT NULL,
    account_name    TEXT,
    iban            TEXT,
    account_number  TEXT,
    routing_number  TEXT,
    bic             TEXT,
    bank_name       TEXT,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, account_ref),
    CHECK ((iban IS NULL) <> (account_number IS NULL))
) STRICT, WITHOUT ROWID;

-- Rates for showing tax in another currency.
CREATE TABLE exchange_rates (
    organization_id BLOB NOT NULL REFERENCES organizations (organization_id),
    from_currency   TEXT NOT NULL,
    to_currency     TEXT NOT NULL,
    -- The first day on which the rate applies.
    day             INTEGER NOT NULL,
    rate            TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, from_currency, to_currency, day)
) STRICT, WITHOUT ROWID;

-- The images of logos. Entities and documents have only the hash. An image that a document names is never deleted.
CREATE TABLE logos (
    organization_id BLOB NOT NULL REFERENCES organizations (organization_id),
    sha256          BLOB NOT NULL,
    format          TEXT NOT NULL CHECK (format IN ('png', 'svg')),
    image           BLOB NOT NULL,
    PRIMARY KEY (organization_id, sha256)
) STRICT;

-- Contracts: chains of immutable versions. Every key includes the customer, by which tables are distributed.

CREATE TABLE contracts (
    contract_id      BLOB NOT NULL,
    customer_id      BLOB NOT NULL REFERENCES customers (customer_id),
    organization_id  BLOB NOT NULL,
    number           INTEGER NOT NULL,
    po_number        TEXT,
    -- As in customers.
    metadata         TEXT,
    -- The number of the newest version.
    version          INTEGER NOT NULL,
    -- Identifies the contract's terms in caches. Each change takes a new identifier, also one that is rolled back.
    terms_id         BLOB NOT NULL DEFAULT x'',
    -- The first and last day that the newest version bills, and the entity whose time zone determines the contract's state: the entity in
    -- the newest terms of its first product. NULL where nothing is billed.
    first_day        INTEGER,
    last_day         INTEGER,
    entity_ref       TEXT,
    created_at       INTEGER NOT NULL,
    -- When the newest version was created.
    updated_at       INTEGER NOT NULL,
    cancelled_at     INTEGER,
    -- When the contract next has a document to issue. NULL: never again.
    next_due_at      INTEGER,
    -- Identifies the state of the contract's terms and documents in caches. Each transaction that locks the contract exclusively takes a new
    -- identifier, also one that is rolled back. A counter would repeat its numbers after a failover that loses the last transactions.
    stamp            BLOB NOT NULL DEFAULT x'00000000000000000000000000000000',
    -- As in customers, so that usage reads it with the contract.
    watched          INTEGER NOT NULL DEFAULT 0 CHECK (watched IN (0, 1)),
    -- The number of documents opened so far, from which a document takes its number in the contract.
    documents_opened INTEGER NOT NULL,
    -- The number of notifications about the contract.
    notification_count INTEGER NOT NULL DEFAULT 0 CHECK (notification_count >= 0),
    -- What the billing run could not bill, with the first documents and their codes as JSON, and when that was last told. NULL: it is
    -- billed.
    failures         TEXT,
    failure_told_at  INTEGER,
    PRIMARY KEY (contract_id, customer_id)
) STRICT, WITHOUT ROWID;
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
    contract_id BLOB NOT NULL,
    customer_id BLOB NOT NULL,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    created_by  TEXT,
    po_number   TEXT,
    PRIMARY KEY (contract_id, customer_id, version),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id)
) STRICT, WITHOUT ROWID;

-- The terms of a product from a day on, as a version states them, or the reason why the product ends. From its day on a segment replaces
-- all segments of earlier versions, also those that begin on or after that day.
-- With a rowid: rows of a kilobyte don't fit into the nodes of an index, and each step of a search would read overflow pages.
CREATE TABLE contract_products (
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
) STRICT;

-- The contracts and products that meter a usage product or ever did: where an event is matched first.
CREATE TABLE contract_usage_products (
    customer_id       BLOB NOT NULL,
    usage_product_ref TEXT NOT NULL,
    contract_id       BLOB NOT NULL,
    product_no        INTEGER NOT NULL,
    PRIMARY KEY (customer_id, usage_product_ref, contract_id, product_no),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id)
) STRICT, WITHOUT ROWID;

-- Documents: invoices, credits and debits, from draft to issued.

CREATE TABLE documents (
    document_id          BLOB NOT NULL,
    customer_id          BLOB NOT NULL,
    organization_id      BLOB NOT NULL,
    contract_id          BLOB NOT NULL,
    entity_ref           TEXT NOT NULL,
    kind                 TEXT NOT NULL CHECK (kind IN ('INVOICE', 'CREDIT', 'DEBIT')),
    -- The entity's prefix when the document took its number.
    number_prefix        TEXT NOT NULL,
    sequence             INTEGER NOT NULL,
    -- Always 0. Part of the unique index on numbers.
    number_copy          INTEGER NOT NULL DEFAULT 0,
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
    -- The purchase order number shown. A draft shows its contract's.
    po_number            TEXT,
    -- The invoice that a credit, debit or child document belongs to.
    parent_document_id   BLOB,
    -- The root of the document family: the invoice without a parent, or the document itself.
    family_document_id   BLOB NOT NULL DEFAULT x'',
    -- The void document that this one bills again.
    replaces_document_id BLOB,
    created_at           INTEGER NOT NULL,
    lifecycle            TEXT NOT NULL CHECK (lifecycle IN ('DRAFT', 'ISSUED', 'VOID', 'UNCOLLECTIBLE')),
    issue_date           INTEGER,
    due_date             INTEGER,
    voided_at            INTEGER,
    -- The entity's service date on which an issued document was voided.
    voided_on            INTEGER,
    -- The content of a draft when it was voided.
    discarded_content    TEXT,
    -- The tax of an issued document in its entity's tax currency, with the exchange rate, if it was converted.
    converted_tax        TEXT,
    -- Copies from the issued content, payments and applications, so that lists can filter by derived states.
    total_minor          INTEGER,
    paid_minor           INTEGER NOT NULL,
    credits_minor        INTEGER NOT NULL,
    -- The used and the unapplied amount of a credit, and the amount due of other documents.
    used_minor           INTEGER NOT NULL DEFAULT 0,
    unapplied_minor      INTEGER,
    amount_due_minor     INTEGER,
    paid_date            INTEGER,
    -- When the document was last opened, issued, voided, paid, credited, applied or written off. Of a draft, also when its period,
    -- products or charges, or its contract's version, last changed.
    updated_at           INTEGER NOT NULL DEFAULT 0,
    -- The number of notifications about the document.
    notification_count   INTEGER NOT NULL DEFAULT 0 CHECK (notification_count >= 0),
    PRIMARY KEY (document_id, customer_id),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    FOREIGN KEY (parent_document_id, customer_id) REFERENCES documents (document_id, customer_id),
    FOREIGN KEY (replaces_document_id, customer_id) REFERENCES documents (document_id, customer_id),
    CHECK ((purpose = 'REGULAR') = (slot IS NOT NULL)),
    CHECK (period_start < period_end),
    CHECK (lifecycle NOT IN ('ISSUED', 'UNCOLLECTIBLE') OR (issue_date IS NOT NULL AND total_minor IS NOT NULL))
) STRICT, WITHOUT ROWID;
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
CREATE INDEX documents_by_issue_date ON documents (organization_id, issue_date, document_id, customer_id, currency, kind, lifecycle, total_minor);
CREATE INDEX documents_by_void_date ON documents (organization_id, voided_on, document_id, customer_id, currency, kind, total_minor) WHERE voided_on IS NOT NULL;
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
    document_id  BLOB NOT NULL,
    customer_id  BLOB NOT NULL,
    product_no   INTEGER NOT NULL,
    position     INTEGER NOT NULL,
    contract_id  BLOB NOT NULL,
    period_start INTEGER NOT NULL,
    -- NULL on a document that doesn't bill a period.
    slot         TEXT CHECK (slot IN ('PERIOD', 'USAGE_DEBIT', 'CLOSING')),
    -- Whether the document is in force. A void document leaves its slot free.
    active       INTEGER NOT NULL,
    PRIMARY KEY (document_id, customer_id, product_no),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
-- A product's period is billed once: one document in force per slot.
CREATE UNIQUE INDEX document_parts_in_force ON document_parts (customer_id, contract_id, product_no, period_start, slot) WHERE active;

-- The lines of issued documents and open adjustments: what a service period was billed, and at which rates.
CREATE TABLE document_lines (
    document_id          BLOB NOT NULL,
    customer_id          BLOB NOT NULL,
    ordinal              INTEGER NOT NULL,
    contract_id          BLOB NOT NULL,
    product_no           INTEGER NOT NULL,
    -- NULL: the true-up to the pricing's minimum fee.
    line_item_id         TEXT,
    bill_with            TEXT NOT NULL CHECK (bill_with IN ('FIXED', 'USAGE')),
    -- The first day of the service period whose price the line is part of.
    billed_period_start  INTEGER NOT NULL,
    discount_rate        TEXT NOT NULL,
    tax_rate             TEXT NOT NULL,
    -- Tax category and reason as JSON. Empty where neither is stated.
    tax_basis            TEXT NOT NULL DEFAULT '',
    -- Whether the tax follows a default of the customer or the entity.
    has_default_tax      INTEGER NOT NULL DEFAULT FALSE CHECK (has_default_tax IN (FALSE, TRUE)),
    usage_product_ref    TEXT,
    -- The days shown.
    service_period_start INTEGER NOT NULL,
    service_period_end   INTEGER NOT NULL,
    quantity             TEXT,
    -- On an open adjustment: the sum of digests of the events whose change the line bills.
    event_changes        INTEGER NOT NULL DEFAULT 0,
    amount_minor         INTEGER NOT NULL,
    -- Whether the line is on an issued document.
    frozen               INTEGER NOT NULL DEFAULT FALSE CHECK (frozen IN (FALSE, TRUE)),
    PRIMARY KEY (document_id, customer_id, ordinal),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX document_lines_of_service_period ON document_lines (customer_id, contract_id, product_no, billed_period_start);

-- Discount and tax billed by the issued documents of a family, with the amounts they are computed from. Credits count as negative.
CREATE TABLE family_sums (
    customer_id        BLOB NOT NULL,
    family_document_id BLOB NOT NULL,
    -- A sum of tax has −1 and a sum of prepaid credit −2, because a key has no NULL. Other sums are of discount at one discount rate and
    -- one tax.
    product_no         INTEGER NOT NULL,
    -- A decimal without trailing zeros, so that equal rates make one key. Empty for a sum of tax. The grant of a sum of prepaid credit.
    discount_rate      TEXT NOT NULL,
    -- Likewise without trailing zeros.
    tax_rate           TEXT NOT NULL,
    -- As in document_lines.
    tax_basis          TEXT NOT NULL,
    organization_id    BLOB NOT NULL,
    base_minor         INTEGER NOT NULL,
    amount_minor       INTEGER NOT NULL,
    PRIMARY KEY (customer_id, family_document_id, product_no, discount_rate, tax_rate, tax_basis),
    FOREIGN KEY (family_document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;

-- The content of issued documents, kept to the byte. Each hash includes the previous one of its series.
CREATE TABLE issued_documents (
    document_id     BLOB NOT NULL,
    customer_id     BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    entity_ref      TEXT NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('INVOICE', 'CREDIT', 'DEBIT')),
    -- Counts the issued documents of the series from 1, in the order of their issue.
    chain_position  INTEGER NOT NULL,
    previous_hash   BLOB NOT NULL,
    content_hash    BLOB NOT NULL,
    content         TEXT NOT NULL,
    issued_at       INTEGER NOT NULL,
    PRIMARY KEY (document_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT;
CREATE INDEX issued_documents_chain ON issued_documents (organization_id, entity_ref, kind, chain_position);

-- Files generated from issued documents on the first request, and unchanged from then on.
CREATE TABLE document_files (
    document_id BLOB NOT NULL,
    customer_id BLOB NOT NULL,
    file        TEXT NOT NULL CHECK (file IN ('PDF', 'UBL', 'CII')),
    bytes       BLOB NOT NULL,
    sha256      BLOB NOT NULL,
    -- The program and release that generated the file.
    maker       TEXT NOT NULL,
    made_at     INTEGER NOT NULL,
    PRIMARY KEY (document_id, customer_id, file),
    FOREIGN KEY (document_id, customer_id) REFERENCES issued_documents (document_id, customer_id)
) STRICT;

-- A counter for each entity and kind of document, and one for each organization's contracts (kind CONTRACT, with the organization's id as
-- its entity_ref). A counter
-- row rolls back with its transaction. A sequence would leave gaps.
CREATE TABLE number_series (
    organization_id BLOB NOT NULL,
    entity_ref      TEXT NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('INVOICE', 'CREDIT', 'DEBIT', 'CONTRACT')),
    -- The prefix of its numbers. It cannot change after the first number.
    prefix          TEXT NOT NULL,
    last            INTEGER NOT NULL,
    -- The number of issued documents, and the hash of the last one.
    chain_length    INTEGER NOT NULL,
    chain_head      BLOB NOT NULL,
    PRIMARY KEY (organization_id, entity_ref, kind)
) STRICT, WITHOUT ROWID;

-- Money: payments and refunds, and how payments and credits settle documents.

-- An account for each customer, entity and currency. A transaction that changes amounts locks it.
CREATE TABLE accounts (
    customer_id     BLOB NOT NULL,
    entity_ref      TEXT NOT NULL,
    currency        TEXT NOT NULL,
    organization_id BLOB NOT NULL,
    -- The unapplied amount is unapplied_minor + unapplied_high * 10^18, because it can exceed 64 bits.
    unapplied_minor INTEGER NOT NULL CHECK (unapplied_minor >= 0),
    unapplied_high  INTEGER NOT NULL DEFAULT 0 CHECK (unapplied_high >= 0),
    PRIMARY KEY (customer_id, entity_ref, currency)
) STRICT, WITHOUT ROWID;
CREATE INDEX accounts_of_organization ON accounts (organization_id, customer_id, entity_ref, currency);

-- The largest numbers up to which usage of customers is accepted.
CREATE TABLE limits (
    limit_id        BLOB NOT NULL,
    customer_id     BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    metric          TEXT NOT NULL CHECK (metric IN ('OWED', 'PREPAID', 'SPEND', 'QUANTITY')),
    -- OWED: the account whose amounts are counted. SPEND: the currency of the price.
    entity_ref      TEXT,
    currency        TEXT,
    -- SPEND and QUANTITY: the product whose service periods are counted.
    contract_id     BLOB,
    product_no      INTEGER,
    -- QUANTITY: what is counted.
    usage_product_ref TEXT,
    line_item_id    TEXT,
    max             TEXT,
    -- A JSON array of decimals, in ascending order.
    thresholds      TEXT NOT NULL,
    -- What notifications stated: the period, the number of thresholds, and where the maximum was reached.
    reached_in      INTEGER,
    reached         INTEGER NOT NULL,
    max_reached_at  TEXT,
    notification_count INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (limit_id, customer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX limits_of_customer ON limits (customer_id);
CREATE INDEX limits_of_organization ON limits (organization_id, created_at, limit_id);

-- Usage that is about to happen, and that limits count while it is open. The entries of a hold are its rows.
CREATE TABLE usage_holds (
    customer_id     BLOB NOT NULL,
    hold_ref        TEXT NOT NULL,
    entry_no        INTEGER NOT NULL,
    organization_id BLOB NOT NULL,
    -- The running total in which the entry counts.
    contract_id     BLOB NOT NULL,
    product_no      INTEGER NOT NULL,
    period_start    INTEGER NOT NULL,
    usage_product_ref TEXT NOT NULL,
    -- Empty without a line item.
    line_item_id    TEXT NOT NULL,
    quantity        TEXT NOT NULL,
    -- The request for the hold.
    digest          BLOB NOT NULL,
    made_at         INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    ended_at        INTEGER,
    -- The event that settled the entry.
    event_id        BLOB,
    PRIMARY KEY (customer_id, hold_ref, entry_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_holds_open ON usage_holds (customer_id, expires_at) WHERE ended_at IS NULL;
CREATE INDEX usage_holds_expired ON usage_holds (expires_at);

-- Prepaid credit that customers bought or were given. Documents take it before tax.
CREATE TABLE credit_grants (
    grant_id        BLOB NOT NULL,
    customer_id     BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    entity_ref      TEXT NOT NULL,
    currency        TEXT NOT NULL,
    amount_minor    INTEGER NOT NULL CHECK (amount_minor > 0),
    -- The sum of the grant's draws.
    drawn_minor     INTEGER NOT NULL CHECK (drawn_minor >= 0),
    name            TEXT NOT NULL,
    -- The days of the service that the credit covers, both inclusive.
    valid_from      INTEGER,
    valid_to        INTEGER,
    -- NULL: every contract.
    contract_id     BLOB,
    -- The invoice that sold the credit, its net amount and its tax as in family_sums. NULL for given credit.
    source_document_id BLOB,
    source_net_minor   INTEGER,
    source_tax_rate    TEXT,
    source_tax_basis   TEXT,
    notification_count INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (grant_id, customer_id),
    FOREIGN KEY (source_document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
-- Each event of a customer with credit reads these.
CREATE INDEX credit_grants_open ON credit_grants (customer_id) WHERE drawn_minor < amount_minor;
-- An invoice sells one grant. The document comes first, because a list of sales can be of many customers.
CREATE UNIQUE INDEX credit_grants_sold ON credit_grants (source_document_id, customer_id) WHERE source_document_id IS NOT NULL;
CREATE INDEX credit_grants_of_customer ON credit_grants (customer_id, created_at, grant_id);
CREATE INDEX credit_grants_of_organization ON credit_grants (organization_id, created_at, grant_id);

-- What issued documents took of grants. An amount below zero is a return.
CREATE TABLE credit_draws (
    document_id     BLOB NOT NULL,
    customer_id     BLOB NOT NULL,
    draw_no         INTEGER NOT NULL,
    organization_id BLOB NOT NULL,
    grant_id        BLOB NOT NULL,
    -- As in family_sums.
    tax_rate        TEXT NOT NULL,
    tax_basis       TEXT NOT NULL,
    amount_minor    INTEGER NOT NULL,
    recorded_at     INTEGER NOT NULL,
    PRIMARY KEY (document_id, customer_id, draw_no),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id),
    FOREIGN KEY (grant_id, customer_id) REFERENCES credit_grants (grant_id, customer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX credit_draws_of_grant ON credit_draws (grant_id, recorded_at, document_id, draw_no);
CREATE INDEX credit_draws_of_customer ON credit_draws (customer_id, recorded_at, document_id, draw_no);
CREATE INDEX credit_draws_of_organization ON credit_draws (organization_id, recorded_at, document_id, draw_no);

CREATE TABLE payments (
    payment_id      BLOB NOT NULL,
    customer_id     BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    entity_ref      TEXT NOT NULL,
    currency        TEXT NOT NULL,
    -- NULL for a deposit.
    document_id     BLOB,
    kind            TEXT NOT NULL CHECK (kind IN ('PAYMENT', 'REFUND')),
    amount_minor    INTEGER NOT NULL,
    paid_date       INTEGER NOT NULL,
    -- The document or payment that a refund pays out.
    of_document_id  BLOB,
    of_payment_id   BLOB,
    method          TEXT,
    reference       TEXT,
    -- As in customers.
    metadata        TEXT,
    -- The applied and refunded amount of a payment, and the rest.
    used_minor      INTEGER NOT NULL,
    unapplied_minor INTEGER NOT NULL,
    recorded_at     INTEGER NOT NULL,
    recorded_by     TEXT NOT NULL,
    -- When the payment was last recorded, reversed, applied or refunded.
    updated_at      INTEGER NOT NULL,
    reversed_on     INTEGER,
    reversal_reason TEXT,
    reversed_at     INTEGER,
    reversed_by     TEXT,
    PRIMARY KEY (payment_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id),
    CHECK ((kind = 'REFUND') = ((of_document_id IS NULL) <> (of_payment_id IS NULL))),
    CHECK ((reversed_on IS NULL) = (reversed_at IS NULL) AND (reversed_on IS NULL) = (reversed_by IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX payments_of_document ON payments (customer_id, document_id);
CREATE INDEX payments_unapplied ON payments (customer_id, entity_ref, currency) WHERE unapplied_minor > 0;
CREATE INDEX payments_by_date ON payments (organization_id, paid_date, payment_id);
CREATE INDEX payments_by_update ON payments (organization_id, updated_at, payment_id);
CREATE INDEX payments_by_reference ON payments (organization_id, reference) WHERE reference IS NOT NULL;

-- Amounts of credits and payments that settle a document. An application that is undone stays, with the actor and the time.
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

-- Amounts written off. A negative amount reduces an earlier write-off.
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

-- The metadata of customers, contracts and payments by key and value. The rows themselves have it, too.
CREATE TABLE metadata (
    organization_id BLOB NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('CUSTOMER', 'CONTRACT', 'PAYMENT')),
    key             TEXT NOT NULL,
    value           TEXT NOT NULL,
    customer_id     BLOB NOT NULL,
    subject_id      BLOB NOT NULL,
    PRIMARY KEY (organization_id, kind, key, value, customer_id, subject_id)
) STRICT, WITHOUT ROWID;

-- Charges: amounts billed by hand, with manual credits among them.

-- The newest revision of each charge, also of deleted ones.
CREATE TABLE charges (
    charge_ref      TEXT NOT NULL,
    customer_id     BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    contract_id     BLOB NOT NULL,
    product_no      INTEGER NOT NULL,
    -- The day that determines the period in which the charge is billed.
    charged_on      INTEGER NOT NULL,
    name            TEXT NOT NULL,
    quantity        TEXT NOT NULL,
    unit_price      TEXT NOT NULL,
    unit            TEXT,
    currency        TEXT NOT NULL,
    bill_with       TEXT NOT NULL CHECK (bill_with IN ('FIXED', 'USAGE')),
    discountable    INTEGER NOT NULL,
    goods           INTEGER NOT NULL,
    note            TEXT,
    reason          TEXT,
    recorded_at     INTEGER NOT NULL,
    revision        INTEGER NOT NULL,
    revised_at      INTEGER NOT NULL,
    revised_by      TEXT NOT NULL,
    deleted         INTEGER NOT NULL,
    PRIMARY KEY (customer_id, charge_ref),
    UNIQUE (organization_id, charge_ref),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX charges_of_contract ON charges (customer_id, contract_id);
CREATE INDEX charges_of_organization ON charges (organization_id, recorded_at, charge_ref);
CREATE INDEX charges_by_update ON charges (organization_id, revised_at, charge_ref);

-- Superseded revisions only.
CREATE TABLE charge_revisions (
    charge_ref      TEXT NOT NULL,
    customer_id     BLOB NOT NULL,
    revision        INTEGER NOT NULL,
    organization_id BLOB NOT NULL,
    contract_id     BLOB NOT NULL,
    product_no      INTEGER NOT NULL,
    charged_on      INTEGER NOT NULL,
    name            TEXT NOT NULL,
    quantity        TEXT NOT NULL,
    unit_price      TEXT NOT NULL,
    unit            TEXT,
    currency        TEXT NOT NULL,
    bill_with       TEXT NOT NULL CHECK (bill_with IN ('FIXED', 'USAGE')),
    discountable    INTEGER NOT NULL,
    goods           INTEGER NOT NULL,
    note            TEXT,
    reason          TEXT,
    recorded_at     INTEGER NOT NULL,
    revised_at      INTEGER NOT NULL,
    revised_by      TEXT NOT NULL,
    deleted         INTEGER NOT NULL,
    PRIMARY KEY (customer_id, charge_ref, revision),
    FOREIGN KEY (customer_id, charge_ref) REFERENCES charges (customer_id, charge_ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX charge_revisions_of_organization ON charge_revisions (organization_id, charge_ref, revision);

-- Usage: events, their revisions and their running totals. Recording an event is the most frequent write.

CREATE TABLE usage_totals (
    customer_id         BLOB NOT NULL,
    contract_id         BLOB NOT NULL,
    product_no          INTEGER NOT NULL,
    -- The first day of the service period.
    period_start        INTEGER NOT NULL,
    usage_product_ref   TEXT NOT NULL,
    -- The line item that counts the events. Empty if no line item of the usage product has `where` or `rest`.
    line_item_id        TEXT NOT NULL DEFAULT '',
    organization_id     BLOB NOT NULL,
    sum                 TEXT NOT NULL,
    events              INTEGER NOT NULL,
    -- NULL although there are events: unknown until they are counted again. The same applies to the latest event.
    max                 TEXT,
    latest_at           INTEGER,
    latest_service_date INTEGER,
    latest_event_id     BLOB,
    latest_quantity     TEXT,
    -- The latest service date of all events. A time zone that moved west can make it later than `latest_service_date`.
    last_day            INTEGER,
    -- The number of distinct texts of the label that UNIQUE counts. NULL if no line item counts a label.
    distinct_values     INTEGER,
    PRIMARY KEY (customer_id, contract_id, product_no, period_start, usage_product_ref, line_item_id),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    CHECK ((latest_at IS NULL) = (latest_event_id IS NULL) AND (latest_at IS NULL) = (latest_quantity IS NULL)
        AND (latest_at IS NULL) = (latest_service_date IS NULL))
) STRICT, WITHOUT ROWID;

-- The newest revision of each event. The organization is the customer's.
-- There is no foreign key to documents: it would read and lock a document's row for every event. The contract is locked when an event is
-- inserted, the insert checks that drafts are drafts, and `verify` finds events whose document does not exist.
CREATE TABLE usage_events (
    event_id             BLOB NOT NULL,
    customer_id          BLOB NOT NULL,
    contract_id          BLOB NOT NULL,
    product_no           INTEGER NOT NULL,
    usage_product_ref    TEXT NOT NULL,
    service_start        INTEGER NOT NULL,
    -- The day after the last.
    service_end          INTEGER NOT NULL,
    -- The document of the newest revision.
    document_id          BLOB NOT NULL,
    -- The document named in the response to the event's key. NULL: document_id.
    answered_document_id BLOB,
    -- The contract product that the event was first matched to. NULL: contract_id and product_no.
    first_contract_id    BLOB,
    first_product_no     INTEGER,
    -- The first 16 bytes of the SHA-256 of the label that UNIQUE counts. NULL if the terms count no label.
    unique_digest        BLOB,
    occurred_at          INTEGER NOT NULL,
    service_date         INTEGER NOT NULL DEFAULT 0,
    quantity             TEXT NOT NULL,
    report_data          TEXT,
    validations          TEXT,
    format_ref           TEXT,
    format_version       INTEGER,
    -- As submitted.
    raw_event            TEXT,
    recorded_at          INTEGER NOT NULL,
    revision             INTEGER NOT NULL,
    revised_at           INTEGER NOT NULL,
    revised_by           TEXT NOT NULL,
    deleted              INTEGER NOT NULL,
    PRIMARY KEY (event_id, customer_id)
) STRICT, WITHOUT ROWID;
-- Each index here slows down every event, so there are only two for all events. This one finds the events of a service period, to count them again, and
-- those of a document by stepping from period to period.
CREATE INDEX usage_events_of_period ON usage_events (customer_id, contract_id, product_no, service_start, document_id);
-- Lists and counts of all events by time read this index alone. It takes less time per event than the index above: events arrive nearly in
-- the order of time, so those of a group are next to each other.
CREATE INDEX usage_events_by_time ON usage_events (occurred_at, event_id, deleted);
-- Only events with a digest are in this index, which tells whether a text of a label is already counted.
CREATE INDEX usage_events_by_label ON usage_events
    (customer_id, contract_id, product_no, service_start, usage_product_ref, unique_digest)
    WHERE NOT deleted AND unique_digest IS NOT NULL;

-- Superseded revisions only, so that an event that never changes takes one row.
CREATE TABLE usage_event_revisions (
    event_id          BLOB NOT NULL,
    customer_id       BLOB NOT NULL,
    revision          INTEGER NOT NULL,
    contract_id       BLOB NOT NULL,
    product_no        INTEGER NOT NULL,
    usage_product_ref TEXT NOT NULL,
    service_start     INTEGER NOT NULL,
    service_end       INTEGER NOT NULL,
    document_id       BLOB NOT NULL,
    occurred_at       INTEGER NOT NULL,
    service_date      INTEGER NOT NULL DEFAULT 0,
    quantity          TEXT NOT NULL,
    report_data       TEXT,
    validations       TEXT,
    format_ref        TEXT,
    format_version    INTEGER,
    raw_event         TEXT,
    recorded_at       INTEGER NOT NULL,
    revised_at        INTEGER NOT NULL,
    revised_by        TEXT NOT NULL,
    deleted           INTEGER NOT NULL,
    -- Whether the issued document bills this revision: the document was issued when the next revision was recorded, and it bills no
    -- earlier revision.
    billed            INTEGER NOT NULL,
    PRIMARY KEY (event_id, customer_id, revision),
    FOREIGN KEY (event_id, customer_id) REFERENCES usage_events (event_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
-- The billed revisions of events that changed after their document was issued.
CREATE INDEX usage_event_revisions_billed ON usage_event_revisions (customer_id, document_id) WHERE billed;

-- Kept forever, because a key has at most one effect and its response is replayed byte for byte. Rows are short for that reason.
CREATE TABLE usage_event_keys (
    customer_id BLOB NOT NULL,
    -- The first 16 bytes of the SHA-256 of the key. `body_digest` has those of the request.
    key_digest  BLOB NOT NULL,
    event_id    BLOB NOT NULL,
    body_digest BLOB NOT NULL,
    -- NULL: the response names the event, its document and the document's number, and nothing else.
    answer      TEXT,
    PRIMARY KEY (customer_id, key_digest),
    FOREIGN KEY (event_id, customer_id) REFERENCES usage_events (event_id, customer_id)
) STRICT, WITHOUT ROWID;

-- Rejected usage, counted by reason. All servers add to the same rows. Kept for 90 days.
CREATE TABLE refused_usage (
    organization_id   BLOB NOT NULL,
    day               INTEGER NOT NULL,
    code              TEXT NOT NULL,
    customer_ref      TEXT NOT NULL,
    usage_product_ref TEXT NOT NULL,
    count             INTEGER NOT NULL CHECK (count > 0),
    first_at          INTEGER NOT NULL,
    last_at           INTEGER NOT NULL,
    example           TEXT NOT NULL,
    PRIMARY KEY (organization_id, day, code, customer_ref, usage_product_ref)
) STRICT;
-- Finds expired rows.
CREATE INDEX refused_usage_by_day ON refused_usage (day);

-- Imported usage files, and the progress of undoing them. Kept for 400 days.
CREATE TABLE usage_imports (
    organization_id BLOB NOT NULL,
    import_id       BLOB NOT NULL,
    file_name       TEXT,
    bytes           INTEGER NOT NULL,
    sha256          BLOB NOT NULL,
    actor           TEXT NOT NULL,
    request_id      TEXT,
    begun_at        INTEGER NOT NULL,
    ended_at        INTEGER,
    updated_at      INTEGER NOT NULL,
    stopped_at_line INTEGER,
    recorded        INTEGER NOT NULL,
    updated         INTEGER NOT NULL,
    already_there   INTEGER NOT NULL,
    refused         INTEGER NOT NULL,
    skipped         INTEGER NOT NULL,
    documents       TEXT NOT NULL,
    more_documents  INTEGER NOT NULL,
    undone          TEXT,
    PRIMARY KEY (organization_id, import_id)
) STRICT;
CREATE INDEX usage_imports_by_time ON usage_imports (organization_id, begun_at, import_id);
-- Finds expired rows.
CREATE INDEX usage_imports_by_age ON usage_imports (begun_at);

-- The events that undoing an import deletes. Each takes 32 bytes: its id, and the digest of its key. An event without a key has 16 zero
-- bytes as its digest.
CREATE TABLE usage_import_events (
    organization_id BLOB NOT NULL,
    import_id       BLOB NOT NULL,
    part_id         BLOB NOT NULL,
    events          BLOB NOT NULL,
    PRIMARY KEY (organization_id, import_id, part_id)
) STRICT;

-- Records: billing runs, responses to replay, and the audit log.

-- Billing runs, each with the first of its documents and failures. Kept for 400 days.
CREATE TABLE billing_runs (
    organization_id BLOB NOT NULL,
    run_id          BLOB NOT NULL,
    actor           TEXT NOT NULL,
    request_id      TEXT,
    begun_at        INTEGER NOT NULL,
    ended_at        INTEGER,
    updated_at      INTEGER NOT NULL,
    cut_short       INTEGER NOT NULL,
    contracts       INTEGER NOT NULL,
    issued          INTEGER NOT NULL,
    voided          INTEGER NOT NULL,
    failed          INTEGER NOT NULL,
    documents       TEXT NOT NULL,
    failures        TEXT NOT NULL,
    PRIMARY KEY (organization_id, run_id)
) STRICT;
CREATE INDEX billing_runs_by_time ON billing_runs (organization_id, begun_at, run_id);
-- Finds expired rows.
CREATE INDEX billing_runs_by_age ON billing_runs (begun_at);

-- Idempotency records: requests that succeeded under an Idempotency-Key, with their responses. The keys of usage events are in
-- usage_event_keys. Kept for 7 days.
CREATE TABLE replay_log (
    organization_id BLOB NOT NULL,
    path            TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    body_hash       BLOB NOT NULL,
    -- Bytes that only the interface which wrote them interprets.
    answer          BLOB NOT NULL,
    kept_at         INTEGER NOT NULL,
    PRIMARY KEY (organization_id, path, idempotency_key)
) STRICT;
-- Finds expired rows, oldest first.
CREATE INDEX replay_log_by_age ON replay_log (kept_at);

-- Append-only. Each entry is written in the transaction of its change.
CREATE TABLE audit_log (
    audit_id        BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    -- The customer that the entry is about, otherwise the organization.
    beside          BLOB NOT NULL,
    at              INTEGER NOT NULL,
    actor           TEXT NOT NULL,
    action          TEXT NOT NULL,
    -- The kind of the object and its reference, separated by a space.
    subject         TEXT NOT NULL,
    before          TEXT,
    after           TEXT,
    request_id      TEXT,
    PRIMARY KEY (audit_id, beside)
) STRICT;
-- Newest first: all entries, those of an object, those of an actor, and those of a request.
CREATE INDEX audit_log_by_time ON audit_log (organization_id, at, audit_id);
CREATE INDEX audit_log_by_subject ON audit_log (organization_id, subject, at, audit_id);
CREATE INDEX audit_log_by_actor ON audit_log (organization_id, actor, at, audit_id);
CREATE INDEX audit_log_by_request ON audit_log (organization_id, request_id) WHERE request_id IS NOT NULL;

-- Notifications: facts for other software, and their delivery to webhooks.

-- A fact about a subject: a document, contract, account, limit or webhook endpoint. Written in the transaction of the change. Kept for 30
-- days (--notification-days). With a rowid, because bodies have up to 16 KiB.
CREATE TABLE notifications (
    notification_id BLOB NOT NULL,
    -- The organization where the subject belongs to no customer.
    customer_id     BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    -- The kind of the subject and its reference, separated by a colon.
    subject         TEXT NOT NULL,
    -- Counts the notifications of the subject from 1.
    sequence        INTEGER NOT NULL CHECK (sequence > 0),
    kind            TEXT NOT NULL,
    -- The bytes that webhooks send.
    body            TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    -- Counts the notifications of the organization from 1. NULL until the notification is numbered.
    position        INTEGER,
    PRIMARY KEY (customer_id, notification_id),
    UNIQUE (customer_id, subject, sequence)
) STRICT;
CREATE INDEX notifications_by_position ON notifications (organization_id, position) WHERE position IS NOT NULL;
CREATE INDEX notifications_by_id ON notifications (organization_id, notification_id);
CREATE INDEX notifications_without_position ON notifications (organization_id, notification_id) WHERE position IS NULL;

-- The last position of each organization's notifications. One server at a time numbers them, as long as it has the lease.
CREATE TABLE notification_heads (
    organization_id BLOB NOT NULL PRIMARY KEY,
    position        INTEGER NOT NULL CHECK (position >= 0),
    lease_by        BLOB,
    lease_until     INTEGER,
    CHECK ((lease_by IS NULL) = (lease_until IS NULL))
) STRICT, WITHOUT ROWID;

-- A restore of the database from a backup. Positions of notifications continue from the epoch times 1,000,000.
CREATE TABLE restores (
    -- Seconds since 1970.
    epoch       INTEGER NOT NULL PRIMARY KEY CHECK (epoch > 0),
    -- An instant up to which the restored database has everything.
    restored_to INTEGER NOT NULL
) STRICT;

-- The billing clock of a sandbox. A database without this row is live.
CREATE TABLE sandbox (
    id  INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    now INTEGER NOT NULL
) STRICT;

-- Notifications that time alone causes, with the instant at which the billing run looks at their subject again.
CREATE TABLE notices (
    customer_id     BLOB NOT NULL,
    subject         TEXT NOT NULL,
    kind            TEXT NOT NULL,
    organization_id BLOB NOT NULL,
    at              INTEGER NOT NULL,
    PRIMARY KEY (customer_id, subject, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX notices_due ON notices (at, organization_id);

-- URLs to which notifications are sent.
CREATE TABLE webhook_endpoints (
    organization_id    BLOB NOT NULL,
    endpoint_id        BLOB NOT NULL,
    url                TEXT NOT NULL,
    -- A list of types. A type is exact, `document.*` or `*`.
    event_types        TEXT NOT NULL,
    -- A list. NULL: notifications of all customers, and those of no customer.
    customer_refs      TEXT,
    description        TEXT,
    enabled            INTEGER NOT NULL,
    -- Why the service disabled the endpoint: FAILING or GONE.
    disabled_reason    TEXT CHECK (disabled_reason IN ('FAILING', 'GONE')),
    -- Nothing is sent before this instant. `pauses` counts the pauses since the last success.
    paused_until       INTEGER,
    pauses             INTEGER NOT NULL DEFAULT 0 CHECK (pauses >= 0),
    -- The first failure since the last success, and the number of failures since then.
    failing_since      INTEGER,
    failures           INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    last_delivered_at  INTEGER,
    -- The number of notifications about the endpoint.
    notification_count INTEGER NOT NULL DEFAULT 0 CHECK (notification_count >= 0),
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    PRIMARY KEY (organization_id, endpoint_id)
) STRICT;

-- The secrets by which an endpoint verifies signatures, encrypted. At most two at a time, of which the older one expires.
CREATE TABLE webhook_secrets (
    endpoint_id BLOB NOT NULL,
    kid         TEXT NOT NULL,
    secret      BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    PRIMARY KEY (endpoint_id, kid)
) STRICT, WITHOUT ROWID;

-- Notifications on their way to an endpoint. Deleted with their notifications.
CREATE TABLE webhook_deliveries (
    endpoint_id     BLOB NOT NULL,
    notification_id BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    -- As in notifications, to find the body.
    customer_id     BLOB NOT NULL,
    position        INTEGER NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('PENDING', 'DELIVERED', 'FAILED', 'CANCELLED')),
    -- The number of attempts.
    attempt         INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    -- When the next attempt is due. NULL unless PENDING.
    due_at          INTEGER,
    -- The server that sends the delivery, until the lease expires. The delivery is due again then.
    lease_by        BLOB,
    lease_until     INTEGER,
    -- The last 10 attempts.
    attempts        TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (endpoint_id, notification_id),
    CHECK ((state = 'PENDING') = (due_at IS NOT NULL)),
    CHECK ((lease_by IS NULL) = (lease_until IS NULL))
) STRICT;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_at, position) WHERE state = 'PENDING';
CREATE INDEX webhook_deliveries_leased ON webhook_deliveries (endpoint_id, lease_until) WHERE lease_by IS NOT NULL;
CREATE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries (endpoint_id, state, position);
CREATE INDEX webhook_deliveries_by_position ON webhook_deliveries (organization_id, position, endpoint_id);

-- Triggers: issued documents, their lines and files, and the audit log never change. The trigger of lines reads only its own row. A line
-- added to an issued document is found by `verify`, which compares lines with the issued content.

CREATE TRIGGER issued_documents_frozen_update BEFORE UPDATE ON issued_documents
BEGIN
    SELECT RAISE(ABORT, 'issued documents never change');
END;
CREATE TRIGGER issued_documents_frozen_delete BEFORE DELETE ON issued_documents
BEGIN
    SELECT RAISE(ABORT, 'issued documents never change');
END;
CREATE TRIGGER document_lines_frozen_update BEFORE UPDATE ON document_lines
WHEN OLD.frozen
BEGIN
    SELECT RAISE(ABORT, 'lines of issued documents never change');
END;
CREATE TRIGGER document_lines_frozen_delete BEFORE DELETE ON document_lines
WHEN OLD.frozen
BEGIN
    SELECT RAISE(ABORT, 'lines of issued documents never change');
END;
CREATE TRIGGER document_files_frozen_update BEFORE UPDATE ON document_files
BEGIN
    SELECT RAISE(ABORT, 'document_files never changes');
END;
CREATE TRIGGER document_files_frozen_delete BEFORE DELETE ON document_files
BEGIN
    SELECT RAISE(ABORT, 'document_files never changes');
END;
CREATE TRIGGER logos_frozen_update BEFORE UPDATE ON logos
BEGIN
    SELECT RAISE(ABORT, 'logos never change');
END;
CREATE TRIGGER logos_frozen_delete BEFORE DELETE ON logos
BEGIN
    SELECT RAISE(ABORT, 'logos never change');
END;
CREATE TRIGGER audit_log_frozen_update BEFORE UPDATE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
CREATE TRIGGER audit_log_frozen_delete BEFORE DELETE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
