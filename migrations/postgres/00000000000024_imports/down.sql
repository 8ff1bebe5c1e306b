DROP TABLE usage_import_events;
DROP TABLE usage_imports;
