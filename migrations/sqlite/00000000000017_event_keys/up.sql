-- Keys of events as digests: what is kept for ever is short. `digest_16` is the server's: the first half of SHA-256.

-- The document that the answer to the event's key names; NULL where that is the one it stands on.
ALTER TABLE usage_events ADD COLUMN answered_document_id BLOB;

-- Kept for ever: a key has at most one effect, and its answer is repeated byte for byte.
CREATE TABLE usage_event_keys_new (
    customer_id BLOB NOT NULL,
    -- Of the key, and of what was sent: the first 16 bytes of SHA-256.
    key_digest  BLOB NOT NULL,
    event_id    BLOB NOT NULL,
    body_digest BLOB NOT NULL,
    -- NULL where it names the event, its document and that document's number, and nothing else.
    answer      TEXT,
    PRIMARY KEY (customer_id, key_digest),
    FOREIGN KEY (event_id, customer_id) REFERENCES usage_events (event_id, customer_id)
) STRICT, WITHOUT ROWID;
WITH said AS (
    SELECT k.customer_id, k.idempotency_key, k.event_id, k.body_hash, k.answer, lower(hex(e.event_id)) AS event,
            lower(hex(d.document_id)) AS document,
            d.number_prefix || CASE d.kind WHEN 'INVOICE' THEN '-INV-' WHEN 'CREDIT' THEN '-CRD-' ELSE '-DBT-' END || d.sequence AS number
        FROM usage_event_keys k
            JOIN usage_events e ON e.event_id = k.event_id AND e.customer_id = k.customer_id
            JOIN documents d ON d.document_id = e.document_id AND d.customer_id = e.customer_id
)
INSERT INTO usage_event_keys_new (customer_id, key_digest, event_id, body_digest, answer)
    SELECT customer_id, digest_16(idempotency_key), event_id, substr(body_hash, 1, 16),
        nullif(
            answer,
            format(
                '{"event_ref":"%s-%s-%s-%s-%s","related_document_ref":"%s-%s-%s-%s-%s","related_document_numbers":"%s"}',
                substr(event, 1, 8), substr(event, 9, 4), substr(event, 13, 4), substr(event, 17, 4), substr(event, 21),
                substr(document, 1, 8), substr(document, 9, 4), substr(document, 13, 4), substr(document, 17, 4), substr(document, 21),
                number
            )
        )
    FROM said ORDER BY customer_id, digest_16(idempotency_key);
DROP TABLE usage_event_keys;
ALTER TABLE usage_event_keys_new RENAME TO usage_event_keys;
