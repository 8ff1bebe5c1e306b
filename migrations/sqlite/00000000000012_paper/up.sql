-- Documents as legal papers: what customers and entities say of themselves, bank accounts to pay to, and exchange rates for tax.

-- NULL: nothing is said.
ALTER TABLE entities ADD COLUMN legal TEXT;
ALTER TABLE entities ADD COLUMN paper TEXT;
ALTER TABLE customers ADD COLUMN legal TEXT;
ALTER TABLE customers ADD COLUMN buyer_reference TEXT;
-- UN/ECE Recommendations 20 and 21; C62 is one.
ALTER TABLE usage_products ADD COLUMN unit_code TEXT NOT NULL DEFAULT 'C62';

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
    PRIMARY KEY (organization_id, account_ref),
    CHECK ((iban IS NULL) <> (account_number IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE exchange_rates (
    organization_id BLOB NOT NULL REFERENCES organizations (organization_id),
    from_currency   TEXT NOT NULL,
    to_currency     TEXT NOT NULL,
    -- The first day it holds, counted from 1970.
    day             INTEGER NOT NULL,
    rate            TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, from_currency, to_currency, day)
) STRICT, WITHOUT ROWID;
