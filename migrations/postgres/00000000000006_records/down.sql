DROP TABLE audit_log;
DROP TABLE replay_log;
