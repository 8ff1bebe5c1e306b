-- What is unapplied of an account, which no single integer may hold: unapplied_minor + unapplied_high * 10^18.
ALTER TABLE accounts ADD COLUMN unapplied_high BIGINT NOT NULL DEFAULT 0 CHECK (unapplied_high >= 0);
-- The entity's service date on which an issued document was voided. NULL of those voided before this column: their service date follows
-- from voided_at.
ALTER TABLE documents ADD COLUMN voided_on DATE;
