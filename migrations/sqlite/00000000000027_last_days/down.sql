ALTER TABLE usage_totals DROP COLUMN last_day;
