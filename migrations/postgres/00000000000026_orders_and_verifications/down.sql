ALTER TABLE organizations DROP COLUMN last_verification;
DROP INDEX contracts_by_last_day;
CREATE INDEX contracts_by_last_day ON contracts (organization_id, last_day);
DROP INDEX customers_by_lower_name;
CREATE INDEX customers_by_lower_name ON customers (organization_id, lower(name COLLATE "C"));
