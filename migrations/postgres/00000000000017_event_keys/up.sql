-- Keys of events as digests: what is kept for ever is short.

-- The document that the answer to the event's key names; NULL where that is the one it stands on.
ALTER TABLE usage_events ADD COLUMN answered_document_id UUID;

-- Kept for ever: a key has at most one effect, and its answer is repeated byte for byte.
CREATE TABLE usage_event_keys_new (
    customer_id UUID NOT NULL,
    -- Of the key, and of what was sent: the first 16 bytes of SHA-256. A UUID is the shortest that 16 bytes are stored as.
    key_digest  UUID NOT NULL,
    event_id    UUID NOT NULL,
    body_digest UUID NOT NULL,
    -- NULL where it names the event, its document and that document's number, and nothing else.
    answer      TEXT,
    CONSTRAINT usage_event_keys_by_digest PRIMARY KEY (customer_id, key_digest),
    FOREIGN KEY (event_id, customer_id) REFERENCES usage_events (event_id, customer_id)
);
INSERT INTO usage_event_keys_new (customer_id, key_digest, event_id, body_digest, answer)
    SELECT k.customer_id, encode(substring(sha256(convert_to(k.idempotency_key, 'UTF8')) FOR 16), 'hex')::uuid, k.event_id,
        encode(substring(k.body_hash FOR 16), 'hex')::uuid,
        nullif(
            k.answer,
            format(
                '{"event_ref":"%s","related_document_ref":"%s","related_document_numbers":"%s-%s-%s"}',
                e.event_id, d.document_id, d.number_prefix,
                CASE d.kind WHEN 'INVOICE' THEN 'INV' WHEN 'CREDIT' THEN 'CRD' ELSE 'DBT' END, d.sequence
            )
        )
    FROM usage_event_keys k
        JOIN usage_events e ON e.event_id = k.event_id AND e.customer_id = k.customer_id
        JOIN documents d ON d.document_id = e.document_id AND d.customer_id = e.customer_id;
DROP TABLE usage_event_keys;
ALTER TABLE usage_event_keys_new RENAME TO usage_event_keys;
ALTER TABLE usage_event_keys RENAME CONSTRAINT usage_event_keys_by_digest TO usage_event_keys_pkey;
