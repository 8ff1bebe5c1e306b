-- Administrators who can't log in any more.

-- Since when.
ALTER TABLE administrators ADD COLUMN disabled_at TIMESTAMPTZ;
