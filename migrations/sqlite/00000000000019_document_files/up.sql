-- Files that are made of issued documents when they are first asked for, and are the same for ever.

CREATE TABLE document_files (
    document_id BLOB NOT NULL,
    customer_id BLOB NOT NULL,
    file        TEXT NOT NULL CHECK (file IN ('PDF', 'UBL', 'CII')),
    bytes       BLOB NOT NULL,
    sha256      BLOB NOT NULL,
    -- What made it, with its release.
    maker       TEXT NOT NULL,
    made_at     INTEGER NOT NULL,
    PRIMARY KEY (document_id, customer_id, file),
    FOREIGN KEY (document_id, customer_id) REFERENCES issued_documents (document_id, customer_id)
) STRICT;
CREATE TRIGGER document_files_frozen_update BEFORE UPDATE ON document_files
BEGIN
    SELECT RAISE(ABORT, 'document_files never changes');
END;
CREATE TRIGGER document_files_frozen_delete BEFORE DELETE ON document_files
BEGIN
    SELECT RAISE(ABORT, 'document_files never changes');
END;
