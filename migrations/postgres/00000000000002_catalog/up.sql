-- Who is billed, by whom, for what: small tables that everything refers to. On a distributed database they
-- are reference tables, and the customer is the unit of distribution of everything else.

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
    created_at      TIMESTAMPTZ NOT NULL,
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
    tax             NUMERIC,
    entity_ref      TEXT COLLATE "C",
    net_terms       TEXT,
    payment         JSON NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    UNIQUE (organization_id, customer_ref)
);
-- By hash: a name may be longer than a B-tree takes, and is only ever asked for whole.
CREATE INDEX customers_by_name ON customers USING hash (name);

CREATE TABLE usage_products (
    organization_id   UUID NOT NULL REFERENCES organizations (organization_id),
    usage_product_ref TEXT COLLATE "C" NOT NULL,
    name              TEXT COLLATE "C" NOT NULL,
    unit              TEXT,
    aggregation       TEXT NOT NULL CHECK (aggregation IN ('SUM', 'COUNT', 'MAX', 'LATEST')),
    created_at        TIMESTAMPTZ NOT NULL,
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
    PRIMARY KEY (organization_id, pricing_ref)
);

CREATE TABLE usage_formats (
    organization_id UUID NOT NULL REFERENCES organizations (organization_id),
    format_ref      TEXT COLLATE "C" NOT NULL,
    name            TEXT COLLATE "C" NOT NULL,
    -- The newest version, whose name this is.
    version         INTEGER NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (organization_id, format_ref)
);
CREATE UNIQUE INDEX usage_formats_name ON usage_formats (organization_id, md5(name));

-- Versions are never changed: an event names the one it was taken with.
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
