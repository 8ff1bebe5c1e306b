-- One-off amounts with a date, manual credit notes among them, and their history.

-- Charges as their latest revision has them, deleted ones too.
CREATE TABLE charges (
    charge_ref      TEXT COLLATE "C" NOT NULL,
    customer_id     UUID NOT NULL,
    organization_id UUID NOT NULL,
    contract_id     UUID NOT NULL,
    product_no      INTEGER NOT NULL,
    -- The day it counts on.
    charged_on      DATE NOT NULL,
    name            TEXT NOT NULL,
    quantity        NUMERIC NOT NULL,
    unit_price      NUMERIC NOT NULL,
    unit            TEXT,
    currency        TEXT NOT NULL,
    bill_with       TEXT NOT NULL CHECK (bill_with IN ('FIXED', 'USAGE')),
    discountable    BOOLEAN NOT NULL,
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

-- Superseded revisions only.
CREATE TABLE charge_revisions (
    charge_ref      TEXT COLLATE "C" NOT NULL,
    customer_id     UUID NOT NULL,
    revision        INTEGER NOT NULL,
    organization_id UUID NOT NULL,
    contract_id     UUID NOT NULL,
    product_no      INTEGER NOT NULL,
    -- The day it counts on.
    charged_on      DATE NOT NULL,
    name            TEXT NOT NULL,
    quantity        NUMERIC NOT NULL,
    unit_price      NUMERIC NOT NULL,
    unit            TEXT,
    currency        TEXT NOT NULL,
    bill_with       TEXT NOT NULL CHECK (bill_with IN ('FIXED', 'USAGE')),
    discountable    BOOLEAN NOT NULL,
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
