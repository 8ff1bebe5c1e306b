ALTER TABLE replay_log RENAME COLUMN answer TO body;
ALTER TABLE replay_log ADD COLUMN status INTEGER NOT NULL DEFAULT 200;
ALTER TABLE replay_log ADD COLUMN headers TEXT NOT NULL DEFAULT '[["content-type","application/json"]]';

-- A head: three digits, a line each for headers, and an empty line. Its lines become a JSON array, then pairs of name and value.
UPDATE replay_log
    SET status = CAST(CAST(substr(body, 1, 3) AS TEXT) AS INTEGER),
        headers = (
            SELECT coalesce(
                    json_group_array(
                        json_array(substr(l.value, 1, instr(l.value, ': ') - 1), substr(l.value, instr(l.value, ': ') + 2)) ORDER BY l.key
                    ),
                    '[]'
                )
                FROM json_each(
                    '[' || replace(json_quote(CAST(substr(body, 4, instr(body, x'0a0a') - 4) AS TEXT)), '\n', '","') || ']'
                ) l
                WHERE l.value <> ''
        ),
        body = substr(body, instr(body, x'0a0a') + 2)
    WHERE instr(body, x'0a') = 4 AND instr(body, x'0a0a') > 0 AND CAST(substr(body, 1, 3) AS TEXT) GLOB '[1-9][0-9][0-9]';
