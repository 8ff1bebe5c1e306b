-- What is agreed in a contract is known by an identifier: each version's is another, and one that was undone never comes back.

ALTER TABLE contracts ADD COLUMN terms_id UUID;
UPDATE contracts SET terms_id = gen_random_uuid();
ALTER TABLE contracts ALTER COLUMN terms_id SET NOT NULL;
