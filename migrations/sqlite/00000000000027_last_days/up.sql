-- The latest service date of a running total's events. A time zone that moved west makes it another than the latest event's.
ALTER TABLE usage_totals ADD COLUMN last_day INTEGER;
UPDATE usage_totals SET last_day = counted.last_day
    FROM (
        SELECT customer_id, contract_id, product_no, service_start, usage_product_ref, max(service_date) AS last_day
        FROM usage_events
        WHERE NOT deleted
        GROUP BY customer_id, contract_id, product_no, service_start, usage_product_ref
    ) counted
    WHERE counted.customer_id = usage_totals.customer_id AND counted.contract_id = usage_totals.contract_id
        AND counted.product_no = usage_totals.product_no AND counted.service_start = usage_totals.period_start
        AND counted.usage_product_ref = usage_totals.usage_product_ref;
