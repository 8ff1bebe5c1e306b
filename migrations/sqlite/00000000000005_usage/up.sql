-- Usage events, their history and their running totals: the hot path.

CREATE TABLE usage_totals (
    customer_id       BLOB NOT NULL,
    contract_id       BLOB NOT NULL,
    product_no        INTEGER NOT NULL,
    -- The service period's first day, which names it.
    period_start      INTEGER NOT NULL,
    usage_product_ref TEXT NOT NULL,
    organization_id   BLOB NOT NULL,
    sum               TEXT NOT NULL,
    events            INTEGER NOT NULL,
    max               TEXT,
    latest_at         INTEGER,
    latest_event_id   BLOB,
    latest_quantity   TEXT,
    PRIMARY KEY (customer_id, contract_id, product_no, period_start, usage_product_ref),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    CHECK ((latest_at IS NULL) = (latest_event_id IS NULL) AND (latest_at IS NULL) = (latest_quantity IS NULL))
) STRICT, WITHOUT ROWID;

-- Events as their latest revision has them. The organization is the customer's.
CREATE TABLE usage_events (
    event_id          BLOB NOT NULL,
    customer_id       BLOB NOT NULL,
    contract_id       BLOB NOT NULL,
    product_no        INTEGER NOT NULL,
    usage_product_ref TEXT NOT NULL,
    service_start     INTEGER NOT NULL,
    -- The day after the last.
    service_end       INTEGER NOT NULL,
    -- The document the latest revision stands on.
    document_id       BLOB NOT NULL,
    occurred_at       INTEGER NOT NULL,
    quantity          TEXT NOT NULL,
    report_data       TEXT,
    validations       TEXT,
    format_ref        TEXT,
    format_version    INTEGER,
    -- As submitted.
    raw_event         TEXT,
    recorded_at       INTEGER NOT NULL,
    revision          INTEGER NOT NULL,
    revised_at        INTEGER NOT NULL,
    revised_by        TEXT NOT NULL,
    deleted           INTEGER NOT NULL,
    PRIMARY KEY (event_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
-- The one index beside the key: another would cost a third of the events per second on SQLite. It finds the events of a service
-- period, to count them again, and by steps from period to period those of a document.
CREATE INDEX usage_events_of_period ON usage_events (customer_id, contract_id, product_no, service_start, document_id);

-- Superseded revisions only, written when an event changes: an event that never does costs one row.
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
    -- Whether it is what its document was issued with: its document was issued when the next revision was made, and no
    -- earlier one is what it was issued with.
    billed            INTEGER NOT NULL,
    PRIMARY KEY (event_id, customer_id, revision),
    FOREIGN KEY (event_id, customer_id) REFERENCES usage_events (event_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
-- What an issued document bills of events that changed since.
CREATE INDEX usage_event_revisions_billed ON usage_event_revisions (customer_id, document_id) WHERE billed;

-- Kept for ever: a key has at most one effect, and its answer is repeated byte for byte.
CREATE TABLE usage_event_keys (
    customer_id     BLOB NOT NULL,
    idempotency_key TEXT NOT NULL,
    event_id        BLOB NOT NULL,
    body_hash       BLOB NOT NULL,
    answer          TEXT NOT NULL,
    PRIMARY KEY (customer_id, idempotency_key),
    FOREIGN KEY (event_id, customer_id) REFERENCES usage_events (event_id, customer_id)
) STRICT, WITHOUT ROWID;
