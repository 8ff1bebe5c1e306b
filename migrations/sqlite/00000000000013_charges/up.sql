-- One-off amounts with a date, manual credit notes among them, and their history.

-- Charges as their latest revision has them, deleted ones too.
CREATE TABLE charges (
    charge_ref      TEXT NOT NULL,
    customer_id     BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    contract_id     BLOB NOT NULL,
    product_no      INTEGER NOT NULL,
    -- The day it counts on.
    charged_on      INTEGER NOT NULL,
    name            TEXT NOT NULL,
    quantity        TEXT NOT NULL,
    unit_price      TEXT NOT NULL,
    unit            TEXT,
    currency        TEXT NOT NULL,
    bill_with       TEXT NOT NULL CHECK (bill_with IN ('FIXED', 'USAGE')),
    discountable    INTEGER NOT NULL,
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

-- Superseded revisions only.
CREATE TABLE charge_revisions (
    charge_ref      TEXT NOT NULL,
    customer_id     BLOB NOT NULL,
    revision        INTEGER NOT NULL,
    organization_id BLOB NOT NULL,
    contract_id     BLOB NOT NULL,
    product_no      INTEGER NOT NULL,
    -- The day it counts on.
    charged_on      INTEGER NOT NULL,
    name            TEXT NOT NULL,
    quantity        TEXT NOT NULL,
    unit_price      TEXT NOT NULL,
    unit            TEXT,
    currency        TEXT NOT NULL,
    bill_with       TEXT NOT NULL CHECK (bill_with IN ('FIXED', 'USAGE')),
    discountable    INTEGER NOT NULL,
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
