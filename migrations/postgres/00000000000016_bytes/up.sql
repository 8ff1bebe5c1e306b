-- What PostgreSQL alone has doesn't make names unique, and what must keep its bytes is text.

-- By digest, as names of formats are: a name may be longer than a B-tree takes. They are looked up by hash.
ALTER TABLE organizations DROP CONSTRAINT organizations_name_excl;
CREATE UNIQUE INDEX organizations_name ON organizations (md5(name));
CREATE INDEX organizations_by_name ON organizations USING hash (name);
ALTER TABLE administrators DROP CONSTRAINT administrators_email_excl;
CREATE UNIQUE INDEX administrators_email ON administrators (md5(email));
CREATE INDEX administrators_by_email ON administrators USING hash (email);

-- JSON keeps its text here, but not on every database that speaks as PostgreSQL does: elsewhere it loses the order of its keys,
-- and with it the hashes over it and what was submitted.
ALTER TABLE issued_documents ALTER COLUMN content TYPE TEXT;
ALTER TABLE usage_events
    ALTER COLUMN report_data TYPE TEXT,
    ALTER COLUMN raw_event TYPE TEXT;
ALTER TABLE usage_event_revisions
    ALTER COLUMN report_data TYPE TEXT,
    ALTER COLUMN raw_event TYPE TEXT;
