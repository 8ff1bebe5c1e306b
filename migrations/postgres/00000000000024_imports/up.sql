-- Files of usage that were imported, and how far they are undone. Kept for 400 days.
CREATE TABLE usage_imports (
    organization_id UUID NOT NULL,
    import_id       UUID NOT NULL,
    file_name       TEXT,
    bytes           BIGINT NOT NULL,
    sha256          BYTEA NOT NULL,
    actor           TEXT NOT NULL,
    request_id      TEXT,
    begun_at        TIMESTAMPTZ NOT NULL,
    ended_at        TIMESTAMPTZ,
    stopped_at_line BIGINT,
    recorded        BIGINT NOT NULL,
    already_there   BIGINT NOT NULL,
    refused         BIGINT NOT NULL,
    documents       TEXT NOT NULL,
    more_documents  BIGINT NOT NULL,
    undone          TEXT,
    PRIMARY KEY (organization_id, import_id)
);

CREATE INDEX usage_imports_by_time ON usage_imports (organization_id, begun_at, import_id);
-- What is too old is forgotten.
CREATE INDEX usage_imports_by_age ON usage_imports (begun_at);

-- The events that an import made and that undoing it would delete: of each its id and what its key is known by, 16 bytes each, and
-- of one without a key 16 times nothing.
CREATE TABLE usage_import_events (
    organization_id UUID NOT NULL,
    import_id       UUID NOT NULL,
    part_id         UUID NOT NULL,
    events          BYTEA NOT NULL,
    PRIMARY KEY (organization_id, import_id, part_id)
);
