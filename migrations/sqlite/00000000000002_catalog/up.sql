-- Who is billed, by whom, for what: small tables that everything refers to. On a distributed database they
-- are reference tables, and the customer is the unit of distribution of everything else.

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
    created_at      INTEGER NOT NULL,
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
    tax             TEXT,
    entity_ref      TEXT,
    net_terms       TEXT,
    payment         TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    UNIQUE (organization_id, customer_ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX customers_by_name ON customers (organization_id, name);

CREATE TABLE usage_products (
    organization_id   BLOB NOT NULL REFERENCES organizations (organization_id),
    usage_product_ref TEXT NOT NULL,
    name              TEXT NOT NULL,
    unit              TEXT,
    aggregation       TEXT NOT NULL CHECK (aggregation IN ('SUM', 'COUNT', 'MAX', 'LATEST')),
    created_at        INTEGER NOT NULL,
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
    PRIMARY KEY (organization_id, pricing_ref)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_formats (
    organization_id BLOB NOT NULL REFERENCES organizations (organization_id),
    format_ref      TEXT NOT NULL,
    name            TEXT NOT NULL,
    -- The newest version, whose name this is.
    version         INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, format_ref),
    UNIQUE (organization_id, name)
) STRICT, WITHOUT ROWID;

-- Versions are never changed: an event names the one it was taken with.
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
