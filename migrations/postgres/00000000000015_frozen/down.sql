DROP TRIGGER document_lines_frozen ON document_lines;
ALTER TABLE document_lines DROP COLUMN frozen;
CREATE OR REPLACE FUNCTION refuse_change_of_issued_lines() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    line document_lines := CASE WHEN TG_OP = 'INSERT' THEN NEW ELSE OLD END;
BEGIN
    IF EXISTS (SELECT 1 FROM issued_documents i WHERE i.document_id = line.document_id AND i.customer_id = line.customer_id) THEN
        RAISE EXCEPTION 'lines of issued documents never change' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER document_lines_frozen BEFORE INSERT OR UPDATE OR DELETE ON document_lines
    FOR EACH ROW EXECUTE FUNCTION refuse_change_of_issued_lines();
