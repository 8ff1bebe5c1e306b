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
ALTER TABLE payments
    DROP COLUMN organization_id,
    DROP COLUMN entity_ref,
    DROP COLUMN currency,
    DROP COLUMN kind,
    DROP COLUMN of_document_id,
    DROP COLUMN of_payment_id,
    DROP COLUMN method,
    DROP COLUMN used_minor,
    DROP COLUMN unapplied_minor,
    DROP COLUMN reversed_on,
    DROP COLUMN reversal_reason,
    DROP COLUMN reversed_at,
    DROP COLUMN reversed_by;
ALTER TABLE documents DROP COLUMN used_minor;
ALTER TABLE documents DROP COLUMN amount_due_minor;
ALTER TABLE documents DROP COLUMN unapplied_minor;
ALTER TABLE customers DROP COLUMN apply_balance;
