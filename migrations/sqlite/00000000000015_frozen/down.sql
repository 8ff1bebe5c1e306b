DROP TRIGGER document_lines_frozen_update;
DROP TRIGGER document_lines_frozen_delete;
ALTER TABLE document_lines DROP COLUMN frozen;
CREATE TRIGGER document_lines_frozen_insert BEFORE INSERT ON document_lines
WHEN EXISTS (SELECT 1 FROM issued_documents WHERE document_id = NEW.document_id AND customer_id = NEW.customer_id)
BEGIN
    SELECT RAISE(ABORT, 'lines of issued documents never change');
END;
CREATE TRIGGER document_lines_frozen_update BEFORE UPDATE ON document_lines
WHEN EXISTS (SELECT 1 FROM issued_documents WHERE document_id = OLD.document_id AND customer_id = OLD.customer_id)
BEGIN
    SELECT RAISE(ABORT, 'lines of issued documents never change');
END;
CREATE TRIGGER document_lines_frozen_delete BEFORE DELETE ON document_lines
WHEN EXISTS (SELECT 1 FROM issued_documents WHERE document_id = OLD.document_id AND customer_id = OLD.customer_id)
BEGIN
    SELECT RAISE(ABORT, 'lines of issued documents never change');
END;
