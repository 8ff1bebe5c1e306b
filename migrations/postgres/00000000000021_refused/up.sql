-- Usage that was refused, counted; every server adds to the same rows. Kept for 90 days.
CREATE TABLE refused_usage (
    organization_id   UUID NOT NULL,
    day               DATE NOT NULL,
    code              TEXT COLLATE "C" NOT NULL,
    customer_ref      TEXT COLLATE "C" NOT NULL,
    usage_product_ref TEXT COLLATE "C" NOT NULL,
    count             BIGINT NOT NULL CHECK (count > 0),
    first_at          TIMESTAMPTZ NOT NULL,
    last_at           TIMESTAMPTZ NOT NULL,
    example           TEXT NOT NULL,
    PRIMARY KEY (organization_id, day, code, customer_ref, usage_product_ref)
);

-- What is too old is forgotten.
CREATE INDEX refused_usage_by_day ON refused_usage (day);
