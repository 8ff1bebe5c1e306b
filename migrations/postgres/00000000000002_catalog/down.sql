DROP TABLE usage_format_versions;
DROP TABLE usage_formats;
DROP TABLE pricings;
DROP TABLE usage_products;
DROP TABLE customers;
DROP TABLE entities;
