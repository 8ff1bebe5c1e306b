ALTER TABLE api_keys DROP COLUMN successor_id;
