-- What was answered is bytes alone: what they say is for the interface that answered.

-- HTTP's: JSON with status 200 is its body, sealed or not. Any other begins with a head of its status and its headers, each on a
-- line, and an empty line.
ALTER TABLE replay_log RENAME COLUMN body TO answer;
UPDATE replay_log SET answer = convert_to(
    status || E'\n' || coalesce(
        (SELECT string_agg((h.header ->> 0) || ': ' || (h.header ->> 1) || E'\n', '' ORDER BY h.position)
            FROM json_array_elements(headers) WITH ORDINALITY AS h (header, position)),
        ''
    ) || E'\n',
    'UTF8'
) || answer
    WHERE status <> 200 OR headers::text <> '[["content-type","application/json"]]';
ALTER TABLE replay_log
    DROP COLUMN status,
    DROP COLUMN headers;
