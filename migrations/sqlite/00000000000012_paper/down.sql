DROP TABLE exchange_rates;
DROP TABLE bank_accounts;
ALTER TABLE usage_products DROP COLUMN unit_code;
ALTER TABLE customers DROP COLUMN buyer_reference;
ALTER TABLE customers DROP COLUMN legal;
ALTER TABLE entities DROP COLUMN paper;
ALTER TABLE entities DROP COLUMN legal;
