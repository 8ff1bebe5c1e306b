-- Customers by name, and contracts by their last days: equals by reference, so that a page is read from the index.
DROP INDEX customers_by_lower_name;
CREATE INDEX customers_by_lower_name ON customers (organization_id, lower(name COLLATE "C"), customer_ref);
DROP INDEX contracts_by_last_day;
CREATE INDEX contracts_by_last_day ON contracts (organization_id, last_day, contract_id);

-- What `verify` last found, as it recorded it.
ALTER TABLE organizations ADD COLUMN last_verification TEXT;
