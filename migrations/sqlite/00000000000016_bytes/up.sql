-- PostgreSQL's alone: names are unique by a B-tree here, and JSON is text.
SELECT 1;
