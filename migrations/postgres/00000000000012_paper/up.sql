-- Documents as legal papers: what customers and entities say of themselves, bank accounts to pay to, and exchange rates for tax.

-- NULL: nothing is said.
ALTER TABLE entities
    ADD COLUMN legal JSON,
    ADD COLUMN paper JSON;
ALTER TABLE customers
    ADD COLUMN legal JSON,
    ADD COLUMN buyer_reference TEXT;
-- UN/ECE Recommendations 20 and 21; C62 is one.
ALTER TABLE usage_products ADD COLUMN unit_code TEXT NOT NULL DEFAULT 'C62';
ALTER TABLE usage_products ALTER COLUMN unit_code DROP DEFAULT;

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
    PRIMARY KEY (organization_id, account_ref),
    CHECK ((iban IS NULL) <> (account_number IS NULL))
);

CREATE TABLE exchange_rates (
    organization_id UUID NOT NULL REFERENCES organizations (organization_id),
    from_currency   TEXT COLLATE "C" NOT NULL,
    to_currency     TEXT COLLATE "C" NOT NULL,
    -- The first day it holds.
    day             DATE NOT NULL,
    rate            NUMERIC NOT NULL CHECK (rate > 0),
    created_at      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (organization_id, from_currency, to_currency, day)
);
