-- PostgreSQL. What callers name things by sorts by its bytes, as everywhere else.

-- Organizations, and who may act for them. Secrets are stored as digests and hashes only; signing secrets
-- are shared by all replicas and so must be readable.

CREATE TABLE organizations (
    organization_id    UUID NOT NULL PRIMARY KEY,
    name               TEXT COLLATE "C" NOT NULL,
    -- A name may be longer than a B-tree takes.
    EXCLUDE USING hash (name WITH =),
    -- The entity that bills where nothing else names one: the first one made.
    default_entity_ref TEXT COLLATE "C",
    created_at         TIMESTAMPTZ NOT NULL
);

CREATE TABLE administrators (
    admin_id        UUID NOT NULL PRIMARY KEY,
    organization_id UUID NOT NULL REFERENCES organizations (organization_id),
    -- In lower case; unique in the installation, because log-in knows no organization yet.
    email           TEXT COLLATE "C" NOT NULL,
    EXCLUDE USING hash (email WITH =),
    password_hash   TEXT NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL
);

CREATE TABLE api_keys (
    api_key_id      UUID NOT NULL PRIMARY KEY,
    organization_id UUID NOT NULL REFERENCES organizations (organization_id),
    api_key         TEXT COLLATE "C" NOT NULL UNIQUE,
    password_digest BYTEA NOT NULL,
    name            TEXT,
    -- Words separated by spaces, in the order they are shown.
    scopes          TEXT NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    last_used_at    TIMESTAMPTZ,
    expires_at      TIMESTAMPTZ
);

CREATE TABLE sessions (
    digest          BYTEA NOT NULL PRIMARY KEY,
    admin_id        UUID NOT NULL,
    organization_id UUID NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    last_seen_at    TIMESTAMPTZ NOT NULL
);

-- Bearer tokens ended before their time; an entry may go once its token has expired.
CREATE TABLE revoked_tokens (
    token_id   UUID NOT NULL PRIMARY KEY,
    expires_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE signing_secrets (
    kid        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    purpose    TEXT NOT NULL CHECK (purpose IN ('BEARER_TOKEN', 'SESSION_COOKIE')),
    secret     BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);
