ALTER TABLE contracts DROP COLUMN terms_id;
