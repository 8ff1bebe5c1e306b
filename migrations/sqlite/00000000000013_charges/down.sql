DROP TABLE charge_revisions;
DROP TABLE charges;
