-- Contracts as chains of immutable versions. Every key carries the customer: the unit of distribution.

CREATE TABLE contracts (
    contract_id      BLOB NOT NULL,
    customer_id      BLOB NOT NULL REFERENCES customers (customer_id),
    organization_id  BLOB NOT NULL,
    number           INTEGER NOT NULL,
    po_number        TEXT,
    -- The newest version.
    version          INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    cancelled_at     INTEGER,
    -- When it next has something to issue; NULL when it never has again.
    next_due_at      INTEGER,
    -- Counts the documents opened, for their number within the contract.
    documents_opened INTEGER NOT NULL,
    PRIMARY KEY (contract_id, customer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX contracts_of_customer ON contracts (customer_id, created_at, contract_id);
CREATE INDEX contracts_of_organization ON contracts (organization_id, contract_id);
CREATE INDEX contracts_due ON contracts (next_due_at, contract_id) WHERE next_due_at IS NOT NULL;

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

-- What a version says of a product from a date on: terms, or the reason why there are none. A later version takes the place of all
-- before it from its date on, also where that is the same as theirs or earlier.
CREATE TABLE contract_products (
    contract_id   BLOB NOT NULL,
    customer_id   BLOB NOT NULL,
    product_no    INTEGER NOT NULL,
    in_force_from INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    end_reason    TEXT CHECK (end_reason IN ('CANCELLED', 'REMOVED')),
    terms         TEXT,
    PRIMARY KEY (contract_id, customer_id, product_no, version),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    CHECK ((end_reason IS NULL) <> (terms IS NULL))
) STRICT, WITHOUT ROWID;

-- Which products ever metered what: where matching an event begins.
CREATE TABLE contract_usage_products (
    customer_id       BLOB NOT NULL,
    usage_product_ref TEXT NOT NULL,
    contract_id       BLOB NOT NULL,
    product_no        INTEGER NOT NULL,
    PRIMARY KEY (customer_id, usage_product_ref, contract_id, product_no),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id)
) STRICT, WITHOUT ROWID;
