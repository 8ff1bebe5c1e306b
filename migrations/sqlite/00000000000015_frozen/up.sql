-- Lines say themselves whether they are frozen: what guards them looks at nothing but their row.

DROP TRIGGER document_lines_frozen_insert;
DROP TRIGGER document_lines_frozen_update;
DROP TRIGGER document_lines_frozen_delete;

-- Whether it is a line of an issued document. Every insert says it: the default is for the rows that are there.
ALTER TABLE document_lines ADD COLUMN frozen INTEGER NOT NULL DEFAULT FALSE CHECK (frozen IN (FALSE, TRUE));
UPDATE document_lines SET frozen = TRUE WHERE EXISTS (
    SELECT 1 FROM issued_documents i
    WHERE i.document_id = document_lines.document_id AND i.customer_id = document_lines.customer_id
);

-- A line put beside those of an issued document is found by `verify`, which compares them with what was issued.
CREATE TRIGGER document_lines_frozen_update BEFORE UPDATE ON document_lines
WHEN OLD.frozen
BEGIN
    SELECT RAISE(ABORT, 'lines of issued documents never change');
END;
CREATE TRIGGER document_lines_frozen_delete BEFORE DELETE ON document_lines
WHEN OLD.frozen
BEGIN
    SELECT RAISE(ABORT, 'lines of issued documents never change');
END;
