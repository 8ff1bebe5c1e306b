DROP TABLE signing_secrets;
DROP TABLE revoked_tokens;
DROP TABLE sessions;
DROP TABLE api_keys;
DROP TABLE administrators;
DROP TABLE organizations;
