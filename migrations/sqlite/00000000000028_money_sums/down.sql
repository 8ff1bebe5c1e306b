-- Refused where a sum doesn't fit.
UPDATE accounts SET unapplied_minor = unapplied_minor + unapplied_high * 1000000000000000000 WHERE unapplied_high > 0;
ALTER TABLE accounts DROP COLUMN unapplied_high;
ALTER TABLE documents DROP COLUMN voided_on;
