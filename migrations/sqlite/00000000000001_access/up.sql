-- SQLite. Identifiers are 16 bytes, instants microseconds and days days since 1970-01-01 in UTC, exact
-- decimals text: never compared, sorted or summed in SQL.

-- Organizations, and who may act for them. Secrets are stored as digests and hashes only; signing secrets
-- are shared by all replicas and so must be readable.

CREATE TABLE organizations (
    organization_id    BLOB NOT NULL PRIMARY KEY,
    name               TEXT NOT NULL UNIQUE,
    -- The entity that bills where nothing else names one: the first one made.
    default_entity_ref TEXT,
    created_at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE administrators (
    admin_id        BLOB NOT NULL PRIMARY KEY,
    organization_id BLOB NOT NULL REFERENCES organizations (organization_id),
    -- In lower case; unique in the installation, because log-in knows no organization yet.
    email           TEXT NOT NULL UNIQUE,
    password_hash   TEXT NOT NULL,
    created_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
    api_key_id      BLOB NOT NULL PRIMARY KEY,
    organization_id BLOB NOT NULL REFERENCES organizations (organization_id),
    api_key         TEXT NOT NULL UNIQUE,
    password_digest BLOB NOT NULL,
    name            TEXT,
    -- Words separated by spaces, in the order they are shown.
    scopes          TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    last_used_at    INTEGER,
    expires_at      INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    digest          BLOB NOT NULL PRIMARY KEY,
    admin_id        BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    created_at      INTEGER NOT NULL,
    last_seen_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Bearer tokens ended before their time; an entry may go once its token has expired.
CREATE TABLE revoked_tokens (
    token_id   BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE signing_secrets (
    kid        TEXT NOT NULL PRIMARY KEY,
    purpose    TEXT NOT NULL CHECK (purpose IN ('BEARER_TOKEN', 'SESSION_COOKIE')),
    secret     BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
