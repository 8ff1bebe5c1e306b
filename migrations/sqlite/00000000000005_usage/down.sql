DROP TABLE usage_event_keys;
DROP TABLE usage_event_revisions;
DROP TABLE usage_events;
DROP TABLE usage_totals;
