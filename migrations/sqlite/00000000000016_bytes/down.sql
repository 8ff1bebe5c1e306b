-- PostgreSQL's alone.
SELECT 1;
