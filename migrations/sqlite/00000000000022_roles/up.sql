-- What administrators may do, passwords that others gave them, second factors, and sessions that can be told apart.

-- Whoever was there could do everything.
ALTER TABLE administrators ADD COLUMN role TEXT NOT NULL DEFAULT 'owner' CHECK (role IN ('read', 'finance', 'operator', 'owner'));
-- Until when a password that another gave lets them set their own.
ALTER TABLE administrators ADD COLUMN one_time_until INTEGER;
-- Encrypted; in effect from `second_factor_since` on, and codes up to `second_factor_step` are used.
ALTER TABLE administrators ADD COLUMN second_factor_secret BLOB;
ALTER TABLE administrators ADD COLUMN second_factor_since INTEGER;
ALTER TABLE administrators ADD COLUMN second_factor_step INTEGER;
-- SHA-256 of each code that is left, one after the other.
ALTER TABLE administrators ADD COLUMN recovery_digests BLOB;

-- Sessions live for hours: who has one logs in again.
DROP TABLE sessions;
CREATE TABLE sessions (
    digest          BLOB NOT NULL PRIMARY KEY,
    session_id      BLOB NOT NULL UNIQUE,
    admin_id        BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    created_at      INTEGER NOT NULL,
    last_seen_at    INTEGER NOT NULL,
    user_agent      TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_admin ON sessions (admin_id);

-- Another purpose.
CREATE TABLE purposes (
    kid        TEXT NOT NULL PRIMARY KEY,
    purpose    TEXT NOT NULL CHECK (purpose IN ('BEARER_TOKEN', 'SESSION_COOKIE', 'SECOND_FACTOR')),
    secret     BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO purposes SELECT kid, purpose, secret, created_at FROM signing_secrets;
DROP TABLE signing_secrets;
ALTER TABLE purposes RENAME TO signing_secrets;
