-- Who may not do everything, has a password for once or needs a code must not be let in by a release that doesn't know of it.
UPDATE administrators SET password_hash = ''
 WHERE role <> 'owner' OR one_time_until IS NOT NULL OR second_factor_since IS NOT NULL;
ALTER TABLE administrators DROP COLUMN role;
ALTER TABLE administrators DROP COLUMN one_time_until;
ALTER TABLE administrators DROP COLUMN second_factor_secret;
ALTER TABLE administrators DROP COLUMN second_factor_since;
ALTER TABLE administrators DROP COLUMN second_factor_step;
ALTER TABLE administrators DROP COLUMN recovery_digests;

DROP INDEX sessions_by_admin;
DROP INDEX sessions_by_id;
ALTER TABLE sessions DROP COLUMN user_agent;
ALTER TABLE sessions DROP COLUMN session_id;

DELETE FROM signing_secrets WHERE purpose = 'SECOND_FACTOR';
ALTER TABLE signing_secrets DROP CONSTRAINT signing_secrets_purpose_check;
ALTER TABLE signing_secrets ADD CONSTRAINT signing_secrets_purpose_check CHECK (purpose IN ('BEARER_TOKEN', 'SESSION_COOKIE'));
