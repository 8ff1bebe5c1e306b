-- Lines say themselves whether they are frozen: what guards them looks at nothing but their row.

DROP TRIGGER document_lines_frozen ON document_lines;

-- Whether it is a line of an issued document.
ALTER TABLE document_lines ADD COLUMN frozen BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE document_lines l SET frozen = TRUE
    FROM issued_documents i WHERE i.document_id = l.document_id AND i.customer_id = l.customer_id;
ALTER TABLE document_lines ALTER COLUMN frozen DROP DEFAULT;

-- A line put beside those of an issued document is found by `verify`, which compares them with what was issued.
CREATE OR REPLACE FUNCTION refuse_change_of_issued_lines() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'lines of issued documents never change' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER document_lines_frozen BEFORE UPDATE OR DELETE ON document_lines
    FOR EACH ROW WHEN (OLD.frozen) EXECUTE FUNCTION refuse_change_of_issued_lines();
