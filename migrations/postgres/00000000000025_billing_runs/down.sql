DROP TABLE billing_runs;
