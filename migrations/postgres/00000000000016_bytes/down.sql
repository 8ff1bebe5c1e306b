ALTER TABLE usage_event_revisions
    ALTER COLUMN report_data TYPE JSON USING report_data::json,
    ALTER COLUMN raw_event TYPE JSON USING raw_event::json;
ALTER TABLE usage_events
    ALTER COLUMN report_data TYPE JSON USING report_data::json,
    ALTER COLUMN raw_event TYPE JSON USING raw_event::json;
ALTER TABLE issued_documents ALTER COLUMN content TYPE JSON USING content::json;

DROP INDEX administrators_by_email;
DROP INDEX administrators_email;
ALTER TABLE administrators ADD EXCLUDE USING hash (email WITH =);
DROP INDEX organizations_by_name;
DROP INDEX organizations_name;
ALTER TABLE organizations ADD EXCLUDE USING hash (name WITH =);
