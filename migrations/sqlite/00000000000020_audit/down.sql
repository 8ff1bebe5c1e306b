DROP INDEX audit_log_by_request;
DROP INDEX audit_log_by_actor;
DROP INDEX audit_log_by_subject;
DROP INDEX audit_log_by_time;
