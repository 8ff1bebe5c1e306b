-- Billing runs, each with what it did first. Kept for 400 days.
CREATE TABLE billing_runs (
    organization_id UUID NOT NULL,
    run_id          UUID NOT NULL,
    actor           TEXT NOT NULL,
    request_id      TEXT,
    begun_at        TIMESTAMPTZ NOT NULL,
    ended_at        TIMESTAMPTZ,
    cut_short       BOOLEAN NOT NULL,
    contracts       BIGINT NOT NULL,
    issued          BIGINT NOT NULL,
    voided          BIGINT NOT NULL,
    failed          BIGINT NOT NULL,
    documents       TEXT NOT NULL,
    failures        TEXT NOT NULL,
    PRIMARY KEY (organization_id, run_id)
);

CREATE INDEX billing_runs_by_time ON billing_runs (organization_id, begun_at, run_id);
-- What is too old is forgotten.
CREATE INDEX billing_runs_by_age ON billing_runs (begun_at);
