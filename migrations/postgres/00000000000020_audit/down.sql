DROP INDEX audit_log_by_request;
DROP INDEX audit_log_by_actor;
DROP INDEX audit_log_by_subject;
DROP INDEX audit_log_by_time;

ALTER TABLE audit_log ALTER COLUMN after TYPE JSON USING after::JSON;
ALTER TABLE audit_log ALTER COLUMN before TYPE JSON USING before::JSON;
