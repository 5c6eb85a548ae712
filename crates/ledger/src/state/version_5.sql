PRAGMA user_version = 5;

-- How calls went: by hour, by day once that is a while ago, and all together once it is long ago.
CREATE TABLE spans (
    package TEXT NOT NULL,
    version TEXT NOT NULL,
    action TEXT NOT NULL,
    -- Empty where it is not known.
    implementation TEXT NOT NULL,
    begins INTEGER NOT NULL,
    -- An hour, a day, or 0 for all that was before.
    lasts INTEGER NOT NULL,
    -- Empty, or the kind of failure.
    failure TEXT NOT NULL,
    -- The bucket of the latency histogram.
    bucket INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (package, version, action, implementation, begins, lasts, failure, bucket)
) WITHOUT ROWID;

-- What all spans of a series come to, so that nobody has to add them up, and its last calls one by one.
CREATE TABLE totals (
    package TEXT NOT NULL,
    version TEXT NOT NULL,
    action TEXT NOT NULL,
    implementation TEXT NOT NULL,
    -- Those that the tool had a part in; the others are in the spans alone.
    calls INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    -- Of those that went well.
    micros INTEGER NOT NULL,
    first_used INTEGER NOT NULL,
    last_used INTEGER NOT NULL,
    -- The same sums, each call weighed by how late it was made: see `decay`.
    weight REAL NOT NULL,
    weight_well REAL NOT NULL,
    weight_micros REAL NOT NULL,
    -- One letter for each of the last calls, the newest at the end: see `recent`.
    recent TEXT NOT NULL,
    PRIMARY KEY (package, version, action, implementation)
) WITHOUT ROWID;

-- The day on which spans were last folded.
CREATE TABLE folded (
    only INTEGER NOT NULL PRIMARY KEY CHECK (only = 1),
    day INTEGER NOT NULL
) WITHOUT ROWID;

-- How the tests of a version went the last time.
CREATE TABLE tests (
    package TEXT NOT NULL,
    version TEXT NOT NULL,
    total INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    flaky INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (package, version)
) WITHOUT ROWID;

-- What was found to be worse than before.
CREATE TABLE regressions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    package TEXT NOT NULL,
    version TEXT NOT NULL,
    action TEXT NOT NULL,
    implementation TEXT NOT NULL,
    -- 'latency' or 'success'.
    what TEXT NOT NULL,
    -- The version that was better; empty for earlier calls of the same.
    against TEXT NOT NULL,
    calls INTEGER NOT NULL,
    before REAL NOT NULL,
    after REAL NOT NULL,
    chance REAL NOT NULL,
    seen INTEGER NOT NULL,
    over INTEGER,
    -- Whether it is in the log.
    written INTEGER NOT NULL
);
CREATE INDEX regressions_of ON regressions (package);

-- Calls were counted by `id@version`, without a time but that of the last one: they are taken for calls of that day.
CREATE TEMP VIEW parted AS
    SELECT CASE at WHEN 0 THEN package ELSE substr(package, 1, at - 1) END AS id,
           CASE at WHEN 0 THEN '' ELSE substr(package, at + 1) END AS version,
           action, failure, bucket, count, last_used,
           -- The middle of the bucket.
           ((CASE bucket & 1 WHEN 0 THEN 128 ELSE 181 END) << (bucket >> 1)) * 841 / 1000 AS micros,
           failure IN ('', 'tool_failed', 'timed_out', 'bad_output', 'too_much_output') AS ran,
           -- Whole half-lives of 30 days since 2025, because there is no other power here.
           CAST(1 << min(60, max(0, (last_used - 1735689600000) / 2592000000)) AS REAL) AS weight
    -- Where the last `@` is: what is left once everything behind it is taken away.
    FROM (SELECT *, length(rtrim(package, replace(package, '@', ''))) AS at FROM calls);

INSERT INTO spans
    SELECT id, version, action, '', last_used - last_used % 86400000, 86400000, failure, bucket, count FROM parted;

INSERT INTO totals
    SELECT id, version, action, '', sum(ran * count), sum((ran AND failure != '') * count),
           sum((failure = '') * count * micros), min(last_used), max(last_used),
           sum(ran * count * weight), sum((failure = '') * count * weight),
           sum((failure = '') * count * weight * micros), ''
    FROM parted GROUP BY id, version, action;

DROP VIEW parted;
DROP TABLE calls;
