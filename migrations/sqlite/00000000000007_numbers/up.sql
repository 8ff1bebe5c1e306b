-- Numbers that are unique by an index, and one look at every contract.

-- Counts from 0 the documents that had the same number before there was this index: an entity could take the prefix of another.
-- Those keep their numbers, `verify` names them, and everything opened since is 0.
ALTER TABLE documents ADD COLUMN number_copy INTEGER NOT NULL DEFAULT 0;
UPDATE documents SET number_copy = counted.earlier
    FROM (
        SELECT document_id, customer_id, row_number() OVER (
            PARTITION BY organization_id, number_prefix, kind, sequence ORDER BY created_at, document_id
        ) - 1 AS earlier
        FROM documents
    ) AS counted
    WHERE counted.earlier > 0
        AND documents.document_id = counted.document_id AND documents.customer_id = counted.customer_id;
CREATE UNIQUE INDEX documents_numbers ON documents (organization_id, number_prefix, kind, sequence, number_copy);

-- What was due and passed over isn't found by the instant it was put off to: the next billing run looks at every contract once.
UPDATE contracts SET next_due_at = created_at WHERE next_due_at IS NULL OR next_due_at > created_at;
