-- The audit log is written and read from here on. `subject` is the kind of a thing and its reference, with a space between.

-- The newest first: of an organization, of a thing, of whoever did it; and what one request did.
CREATE INDEX audit_log_by_time ON audit_log (organization_id, at, audit_id);
CREATE INDEX audit_log_by_subject ON audit_log (organization_id, subject, at, audit_id);
CREATE INDEX audit_log_by_actor ON audit_log (organization_id, actor, at, audit_id);
CREATE INDEX audit_log_by_request ON audit_log (organization_id, request_id) WHERE request_id IS NOT NULL;
