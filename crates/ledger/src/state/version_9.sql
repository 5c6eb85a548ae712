PRAGMA user_version = 9;

-- How long the tests took that passed, on the average, in microseconds; unknown of older ones, and where none passed.
ALTER TABLE tests ADD COLUMN latency INTEGER;
