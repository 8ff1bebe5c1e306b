-- Usage events, their history and their running totals: the hot path.

-- Updated with every group of events: room on the page lets the update stay there (HOT).
CREATE TABLE usage_totals (
    customer_id       UUID NOT NULL,
    contract_id       UUID NOT NULL,
    product_no        INTEGER NOT NULL,
    -- The service period's first day, which names it.
    period_start      DATE NOT NULL,
    usage_product_ref TEXT COLLATE "C" NOT NULL,
    organization_id   UUID NOT NULL,
    sum               NUMERIC NOT NULL,
    events            BIGINT NOT NULL,
    max               NUMERIC,
    latest_at         TIMESTAMPTZ,
    latest_event_id   UUID,
    latest_quantity   NUMERIC,
    PRIMARY KEY (customer_id, contract_id, product_no, period_start, usage_product_ref),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    CHECK ((latest_at IS NULL) = (latest_event_id IS NULL) AND (latest_at IS NULL) = (latest_quantity IS NULL))
) WITH (fillfactor = 50);

-- Events as their latest revision has them. The organization is the customer's.
CREATE TABLE usage_events (
    event_id          UUID NOT NULL,
    customer_id       UUID NOT NULL,
    contract_id       UUID NOT NULL,
    product_no        INTEGER NOT NULL,
    usage_product_ref TEXT COLLATE "C" NOT NULL,
    service_start     DATE NOT NULL,
    -- The day after the last.
    service_end       DATE NOT NULL,
    -- The document the latest revision stands on.
    document_id       UUID NOT NULL,
    occurred_at       TIMESTAMPTZ NOT NULL,
    quantity          NUMERIC NOT NULL,
    report_data       JSON,
    validations       JSON,
    format_ref        TEXT COLLATE "C",
    format_version    INTEGER,
    -- As submitted.
    raw_event         JSON,
    recorded_at       TIMESTAMPTZ NOT NULL,
    revision          INTEGER NOT NULL,
    revised_at        TIMESTAMPTZ NOT NULL,
    revised_by        TEXT NOT NULL,
    deleted           BOOLEAN NOT NULL,
    PRIMARY KEY (event_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
);
-- The one index beside the key: another would cost a third of the events per second on SQLite. It finds the events of a service
-- period, to count them again, and by steps from period to period those of a document.
CREATE INDEX usage_events_of_period ON usage_events (customer_id, contract_id, product_no, service_start, document_id);

-- Superseded revisions only, written when an event changes: an event that never does costs one row.
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
    quantity          NUMERIC NOT NULL,
    report_data       JSON,
    validations       JSON,
    format_ref        TEXT COLLATE "C",
    format_version    INTEGER,
    raw_event         JSON,
    recorded_at       TIMESTAMPTZ NOT NULL,
    revised_at        TIMESTAMPTZ NOT NULL,
    revised_by        TEXT NOT NULL,
    deleted           BOOLEAN NOT NULL,
    -- Whether it is what its document was issued with: its document was issued when the next revision was made, and no
    -- earlier one is what it was issued with.
    billed            BOOLEAN NOT NULL,
    PRIMARY KEY (event_id, customer_id, revision),
    FOREIGN KEY (event_id, customer_id) REFERENCES usage_events (event_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
);
-- What an issued document bills of events that changed since.
CREATE INDEX usage_event_revisions_billed ON usage_event_revisions (customer_id, document_id) WHERE billed;

-- Kept for ever: a key has at most one effect, and its answer is repeated byte for byte.
CREATE TABLE usage_event_keys (
    customer_id     UUID NOT NULL,
    idempotency_key TEXT COLLATE "C" NOT NULL,
    event_id        UUID NOT NULL,
    body_hash       BYTEA NOT NULL,
    answer          TEXT NOT NULL,
    PRIMARY KEY (customer_id, idempotency_key),
    FOREIGN KEY (event_id, customer_id) REFERENCES usage_events (event_id, customer_id)
);
