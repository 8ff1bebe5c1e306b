-- What was answered to whom, and who did what.

-- Requests that succeeded under an Idempotency-Key, and what they were answered; a usage event's key is beside the event.
CREATE TABLE replay_log (
    organization_id UUID NOT NULL,
    path            TEXT COLLATE "C" NOT NULL,
    idempotency_key TEXT COLLATE "C" NOT NULL,
    body_hash       BYTEA NOT NULL,
    status          INTEGER NOT NULL,
    headers         JSON NOT NULL,
    body            BYTEA NOT NULL,
    kept_at         TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (organization_id, path, idempotency_key)
);

-- What is seven days old is forgotten, the oldest first.
CREATE INDEX replay_log_by_age ON replay_log (kept_at);

-- Append-only, in the transaction of the change.
CREATE TABLE audit_log (
    audit_id        UUID NOT NULL PRIMARY KEY,
    organization_id UUID NOT NULL,
    at              TIMESTAMPTZ NOT NULL,
    actor           TEXT NOT NULL,
    action          TEXT NOT NULL,
    subject         TEXT NOT NULL,
    before          JSON,
    after           JSON,
    request_id      TEXT
);

-- What is written in it stays.
CREATE TRIGGER audit_log_frozen BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_kept BEFORE TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

