DROP TABLE number_series;
DROP TABLE payments;
DROP TABLE issued_documents;
DROP TABLE document_lines;
DROP TABLE document_parts;
DROP TABLE documents;
DROP FUNCTION refuse_change_of_issued_lines();
DROP FUNCTION refuse_change();
