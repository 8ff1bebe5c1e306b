-- A key doesn't come back from its digest, and an older release would take the repeats of its event for new events.
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM usage_event_keys) THEN
        RAISE EXCEPTION 'the keys of events are kept as digests, and repeats of those events would count again: go back to a backup, or delete the rows of usage_event_keys if nothing is sent again';
    END IF;
END $$;

DROP TABLE usage_event_keys;
CREATE TABLE usage_event_keys (
    customer_id     UUID NOT NULL,
    idempotency_key TEXT COLLATE "C" NOT NULL,
    event_id        UUID NOT NULL,
    body_hash       BYTEA NOT NULL,
    answer          TEXT NOT NULL,
    PRIMARY KEY (customer_id, idempotency_key),
    FOREIGN KEY (event_id, customer_id) REFERENCES usage_events (event_id, customer_id)
);
ALTER TABLE usage_events DROP COLUMN answered_document_id;
