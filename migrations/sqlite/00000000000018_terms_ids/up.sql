-- What is agreed in a contract is known by an identifier: each version's is another, and one that was undone never comes back.

ALTER TABLE contracts ADD COLUMN terms_id BLOB NOT NULL DEFAULT x'';
UPDATE contracts SET terms_id = randomblob(16);

-- Rows of a kilobyte don't fit into the nodes of an index: each step of a search would read on elsewhere to compare a key.
CREATE TABLE contract_products_new (
    contract_id   BLOB NOT NULL,
    customer_id   BLOB NOT NULL,
    product_no    INTEGER NOT NULL,
    in_force_from INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    end_reason    TEXT CHECK (end_reason IN ('CANCELLED', 'REMOVED')),
    terms         TEXT,
    PRIMARY KEY (contract_id, customer_id, product_no, version, in_force_from),
    FOREIGN KEY (contract_id, customer_id) REFERENCES contracts (contract_id, customer_id),
    CHECK ((end_reason IS NULL) <> (terms IS NULL))
) STRICT;
INSERT INTO contract_products_new (contract_id, customer_id, product_no, in_force_from, version, end_reason, terms)
    SELECT contract_id, customer_id, product_no, in_force_from, version, end_reason, terms
    FROM contract_products ORDER BY contract_id, customer_id, product_no, version, in_force_from;
DROP TABLE contract_products;
ALTER TABLE contract_products_new RENAME TO contract_products;
