-- Who was disabled must not be let in by a release that doesn't know of it.
UPDATE administrators SET password_hash = '' WHERE disabled_at IS NOT NULL;
ALTER TABLE administrators DROP COLUMN disabled_at;
