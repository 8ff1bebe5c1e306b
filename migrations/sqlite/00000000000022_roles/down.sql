-- Who may not do everything, has a password for once or needs a code must not be let in by a release that doesn't know of it.
UPDATE administrators SET password_hash = ''
 WHERE role <> 'owner' OR one_time_until IS NOT NULL OR second_factor_since IS NOT NULL;
ALTER TABLE administrators DROP COLUMN role;
ALTER TABLE administrators DROP COLUMN one_time_until;
ALTER TABLE administrators DROP COLUMN second_factor_secret;
ALTER TABLE administrators DROP COLUMN second_factor_since;
ALTER TABLE administrators DROP COLUMN second_factor_step;
ALTER TABLE administrators DROP COLUMN recovery_digests;

DROP TABLE sessions;
CREATE TABLE sessions (
    digest          BLOB NOT NULL PRIMARY KEY,
    admin_id        BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    created_at      INTEGER NOT NULL,
    last_seen_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE purposes (
    kid        TEXT NOT NULL PRIMARY KEY,
    purpose    TEXT NOT NULL CHECK (purpose IN ('BEARER_TOKEN', 'SESSION_COOKIE')),
    secret     BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO purposes SELECT kid, purpose, secret, created_at FROM signing_secrets WHERE purpose <> 'SECOND_FACTOR';
DROP TABLE signing_secrets;
ALTER TABLE purposes RENAME TO signing_secrets;
