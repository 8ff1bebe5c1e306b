DROP TABLE refused_usage;
