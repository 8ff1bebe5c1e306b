-- Files that are made of issued documents when they are first asked for, and are the same for ever.

CREATE TABLE document_files (
    document_id UUID NOT NULL,
    customer_id UUID NOT NULL,
    file        TEXT COLLATE "C" NOT NULL CHECK (file IN ('PDF', 'UBL', 'CII')),
    bytes       BYTEA NOT NULL,
    sha256      BYTEA NOT NULL,
    -- What made it, with its release.
    maker       TEXT NOT NULL,
    made_at     TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (document_id, customer_id, file),
    FOREIGN KEY (document_id, customer_id) REFERENCES issued_documents (document_id, customer_id)
);
CREATE TRIGGER document_files_frozen BEFORE UPDATE OR DELETE ON document_files
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER document_files_kept BEFORE TRUNCATE ON document_files
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
