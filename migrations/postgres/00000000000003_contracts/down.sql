DROP TABLE contract_usage_products;
DROP TABLE contract_products;
DROP TABLE contract_versions;
DROP TABLE contracts;
