-- What was answered is bytes alone: what they say is for the interface that answered.

-- HTTP's: JSON with status 200 is its body, sealed or not. Any other begins with a head of its status and its headers, each on a
-- line, and an empty line. Joining keeps every byte, and makes a text that is cast to what it was.
ALTER TABLE replay_log RENAME COLUMN body TO answer;
UPDATE replay_log SET answer = CAST(
    status || char(10) || coalesce(
        (SELECT group_concat((h.value ->> 0) || ': ' || (h.value ->> 1) || char(10), '' ORDER BY h.key) FROM json_each(headers) h),
        ''
    ) || char(10) || answer AS BLOB
)
    WHERE status <> 200 OR headers <> '[["content-type","application/json"]]';
ALTER TABLE replay_log DROP COLUMN status;
ALTER TABLE replay_log DROP COLUMN headers;
