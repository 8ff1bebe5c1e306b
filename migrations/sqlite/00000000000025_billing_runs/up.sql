-- Billing runs, each with what it did first. Kept for 400 days.
CREATE TABLE billing_runs (
    organization_id BLOB NOT NULL,
    run_id          BLOB NOT NULL,
    actor           TEXT NOT NULL,
    request_id      TEXT,
    begun_at        INTEGER NOT NULL,
    ended_at        INTEGER,
    cut_short       INTEGER NOT NULL,
    contracts       INTEGER NOT NULL,
    issued          INTEGER NOT NULL,
    voided          INTEGER NOT NULL,
    failed          INTEGER NOT NULL,
    documents       TEXT NOT NULL,
    failures        TEXT NOT NULL,
    PRIMARY KEY (organization_id, run_id)
) STRICT;

CREATE INDEX billing_runs_by_time ON billing_runs (organization_id, begun_at, run_id);
-- What is too old is forgotten.
CREATE INDEX billing_runs_by_age ON billing_runs (begun_at);
