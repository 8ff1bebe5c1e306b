-- A key doesn't come back from its digest, and an older release would take the repeats of its event for new events.
CREATE TABLE no_keys_of_events (
    keys INTEGER NOT NULL CONSTRAINT
        "the keys of events are kept as digests, and repeats of those events would count again: go back to a backup, or delete the rows of usage_event_keys if nothing is sent again"
        CHECK (keys = 0)
) STRICT;
INSERT INTO no_keys_of_events SELECT count(*) FROM usage_event_keys;
DROP TABLE no_keys_of_events;

DROP TABLE usage_event_keys;
CREATE TABLE usage_event_keys (
    customer_id     BLOB NOT NULL,
    idempotency_key TEXT NOT NULL,
    event_id        BLOB NOT NULL,
    body_hash       BLOB NOT NULL,
    answer          TEXT NOT NULL,
    PRIMARY KEY (customer_id, idempotency_key),
    FOREIGN KEY (event_id, customer_id) REFERENCES usage_events (event_id, customer_id)
) STRICT, WITHOUT ROWID;
ALTER TABLE usage_events DROP COLUMN answered_document_id;
