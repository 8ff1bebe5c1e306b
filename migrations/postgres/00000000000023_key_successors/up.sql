-- Keys that take another's place.

-- Who does; both work until `expires_at`.
ALTER TABLE api_keys ADD COLUMN successor_id UUID;
