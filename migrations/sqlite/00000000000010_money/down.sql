-- What applications, reversals, refunds and write-offs say is gone: payments that hold count in full on the document they were recorded
-- on, credits on their parents.
DROP TABLE applications;
DROP TABLE write_offs;
DROP TABLE accounts;
DROP INDEX documents_due;
DROP INDEX documents_unapplied;
DROP INDEX documents_of_family;
UPDATE documents SET
    lifecycle = CASE lifecycle WHEN 'UNCOLLECTIBLE' THEN 'ISSUED' ELSE lifecycle END,
    paid_minor = coalesce((
        SELECT sum(p.amount_minor) FROM payments p
            WHERE p.customer_id = documents.customer_id AND p.document_id = documents.document_id
                AND p.kind = 'PAYMENT' AND p.reversed_on IS NULL
    ), 0),
    credits_minor = coalesce((
        SELECT sum(c.total_minor) FROM documents c
            WHERE c.customer_id = documents.customer_id AND c.parent_document_id = documents.document_id
                AND c.kind = 'CREDIT' AND c.lifecycle IN ('ISSUED', 'UNCOLLECTIBLE')
    ), 0)
    WHERE total_minor IS NOT NULL;
UPDATE documents SET paid_date = CASE WHEN total_minor <= paid_minor + credits_minor THEN coalesce(paid_date, issue_date) END
    WHERE total_minor IS NOT NULL;
DELETE FROM payments WHERE kind = 'REFUND' OR reversed_on IS NOT NULL;
DROP INDEX payments_unapplied;
DROP INDEX payments_by_date;
ALTER TABLE payments RENAME TO payments_before;
DROP INDEX payments_of_document;
CREATE TABLE payments (
    payment_id   BLOB NOT NULL,
    customer_id  BLOB NOT NULL,
    document_id  BLOB NOT NULL,
    amount_minor INTEGER NOT NULL,
    paid_date    INTEGER NOT NULL,
    reference    TEXT,
    recorded_at  INTEGER NOT NULL,
    recorded_by  TEXT NOT NULL,
    PRIMARY KEY (payment_id, customer_id),
    FOREIGN KEY (document_id, customer_id) REFERENCES documents (document_id, customer_id)
) STRICT, WITHOUT ROWID;
INSERT INTO payments
    SELECT payment_id, customer_id, document_id, amount_minor, paid_date, reference, recorded_at, recorded_by FROM payments_before;
DROP TABLE payments_before;
CREATE INDEX payments_of_document ON payments (customer_id, document_id);
ALTER TABLE documents DROP COLUMN used_minor;
ALTER TABLE documents DROP COLUMN amount_due_minor;
ALTER TABLE documents DROP COLUMN unapplied_minor;
ALTER TABLE customers DROP COLUMN apply_balance;
