-- What was answered to whom, and who did what.

-- Requests that succeeded under an Idempotency-Key, and what they were answered; a usage event's key is beside the event.
CREATE TABLE replay_log (
    organization_id BLOB NOT NULL,
    path            TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    body_hash       BLOB NOT NULL,
    status          INTEGER NOT NULL,
    headers         TEXT NOT NULL,
    body            BLOB NOT NULL,
    kept_at         INTEGER NOT NULL,
    PRIMARY KEY (organization_id, path, idempotency_key)
) STRICT;

-- What is seven days old is forgotten, the oldest first.
CREATE INDEX replay_log_by_age ON replay_log (kept_at);

-- Append-only, in the transaction of the change.
CREATE TABLE audit_log (
    audit_id        BLOB NOT NULL PRIMARY KEY,
    organization_id BLOB NOT NULL,
    at              INTEGER NOT NULL,
    actor           TEXT NOT NULL,
    action          TEXT NOT NULL,
    subject         TEXT NOT NULL,
    before          TEXT,
    after           TEXT,
    request_id      TEXT
) STRICT;

-- What is written in it stays.
CREATE TRIGGER audit_log_frozen_update BEFORE UPDATE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
CREATE TRIGGER audit_log_frozen_delete BEFORE DELETE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

