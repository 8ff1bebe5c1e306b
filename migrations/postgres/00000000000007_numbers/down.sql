DROP INDEX documents_numbers;
ALTER TABLE documents DROP COLUMN number_copy;
