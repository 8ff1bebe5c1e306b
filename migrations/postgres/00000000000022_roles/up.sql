-- What administrators may do, passwords that others gave them, second factors, and sessions that can be told apart.

-- Whoever was there could do everything.
ALTER TABLE administrators ADD COLUMN role TEXT NOT NULL DEFAULT 'owner';
ALTER TABLE administrators ADD CONSTRAINT administrators_role CHECK (role IN ('read', 'finance', 'operator', 'owner'));
-- Until when a password that another gave lets them set their own.
ALTER TABLE administrators ADD COLUMN one_time_until TIMESTAMPTZ;
-- Encrypted; in effect from `second_factor_since` on, and codes up to `second_factor_step` are used.
ALTER TABLE administrators ADD COLUMN second_factor_secret BYTEA;
ALTER TABLE administrators ADD COLUMN second_factor_since TIMESTAMPTZ;
ALTER TABLE administrators ADD COLUMN second_factor_step BIGINT;
-- SHA-256 of each code that is left, one after the other.
ALTER TABLE administrators ADD COLUMN recovery_digests BYTEA;

-- Sessions live for hours: who has one logs in again.
DELETE FROM sessions;
ALTER TABLE sessions ADD COLUMN session_id UUID NOT NULL;
ALTER TABLE sessions ADD COLUMN user_agent TEXT;
CREATE UNIQUE INDEX sessions_by_id ON sessions (session_id);
CREATE INDEX sessions_by_admin ON sessions (admin_id);

-- Another purpose.
ALTER TABLE signing_secrets DROP CONSTRAINT signing_secrets_purpose_check;
ALTER TABLE signing_secrets ADD CONSTRAINT signing_secrets_purpose_check
    CHECK (purpose IN ('BEARER_TOKEN', 'SESSION_COOKIE', 'SECOND_FACTOR'));
