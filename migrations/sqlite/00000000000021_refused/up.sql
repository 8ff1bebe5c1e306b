-- Usage that was refused, counted; every server adds to the same rows. Kept for 90 days.
CREATE TABLE refused_usage (
    organization_id   BLOB NOT NULL,
    day               INTEGER NOT NULL,
    code              TEXT NOT NULL,
    customer_ref      TEXT NOT NULL,
    usage_product_ref TEXT NOT NULL,
    count             INTEGER NOT NULL CHECK (count > 0),
    first_at          INTEGER NOT NULL,
    last_at           INTEGER NOT NULL,
    example           TEXT NOT NULL,
    PRIMARY KEY (organization_id, day, code, customer_ref, usage_product_ref)
) STRICT;

-- What is too old is forgotten.
CREATE INDEX refused_usage_by_day ON refused_usage (day);
