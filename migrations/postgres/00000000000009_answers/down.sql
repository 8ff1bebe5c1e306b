ALTER TABLE replay_log RENAME COLUMN answer TO body;
ALTER TABLE replay_log
    ADD COLUMN status INTEGER NOT NULL DEFAULT 200,
    ADD COLUMN headers JSON NOT NULL DEFAULT '[["content-type","application/json"]]';
ALTER TABLE replay_log
    ALTER COLUMN status DROP DEFAULT,
    ALTER COLUMN headers DROP DEFAULT;

-- A head: three digits, a line each for headers, and an empty line.
WITH head AS (
    SELECT organization_id, path, idempotency_key,
            string_to_array(convert_from(substring(body FROM 1 FOR position('\x0a0a'::bytea IN body) - 1), 'UTF8'), E'\n') AS lines
        FROM replay_log
        WHERE encode(substring(body FROM 1 FOR 4), 'hex') ~ '^3[1-9]3[0-9]3[0-9]0a$' AND position('\x0a0a'::bytea IN body) > 0
)
UPDATE replay_log r
    SET status = head.lines[1]::integer,
        headers = (
            SELECT coalesce(json_agg(json_build_array(split_part(line, ': ', 1), substr(line, strpos(line, ': ') + 2))), '[]')
                FROM unnest(head.lines[2:]) line
        ),
        body = substring(r.body FROM position('\x0a0a'::bytea IN r.body) + 2)
    FROM head
    WHERE r.organization_id = head.organization_id AND r.path = head.path AND r.idempotency_key = head.idempotency_key;
