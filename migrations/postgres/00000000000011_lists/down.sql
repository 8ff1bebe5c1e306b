DROP INDEX payments_by_reference;

DROP INDEX customers_by_tax_id;
DROP INDEX customers_by_email;
DROP INDEX customers_by_lower_name;
DROP INDEX customers_by_creation;

DROP INDEX contracts_cancelled;
DROP INDEX contracts_by_last_day;
DROP INDEX contracts_by_first_day;
DROP INDEX contracts_by_po_number;
DROP INDEX contracts_by_number;
DROP INDEX contracts_by_creation;
ALTER TABLE contracts DROP COLUMN entity_ref;
ALTER TABLE contracts DROP COLUMN last_day;
ALTER TABLE contracts DROP COLUMN first_day;

DROP INDEX documents_not_regular;
DROP INDEX documents_no_invoices;
DROP INDEX documents_not_issued;
DROP INDEX documents_owed;
DROP INDEX documents_by_po_number;
DROP INDEX documents_by_update;
DROP INDEX documents_by_amount;
DROP INDEX documents_without_due_date;
DROP INDEX documents_by_due_date;
DROP INDEX documents_by_issue_date;
DROP INDEX documents_by_period;
DROP INDEX documents_of_entity;
DROP INDEX documents_of_customer;
ALTER TABLE documents DROP COLUMN po_number;
ALTER TABLE documents DROP COLUMN updated_at;
