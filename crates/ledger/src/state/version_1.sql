PRAGMA application_id = 0x48414654;
PRAGMA user_version = 1;

CREATE TABLE calls (
    package TEXT NOT NULL,
    action TEXT NOT NULL,
    -- Empty, or the kind of failure.
    failure TEXT NOT NULL,
    -- The bucket of the latency histogram.
    bucket INTEGER NOT NULL,
    count INTEGER NOT NULL,
    last_used INTEGER NOT NULL,
    PRIMARY KEY (package, action, failure, bucket)
) WITHOUT ROWID;

CREATE TABLE tickets (
    id TEXT NOT NULL PRIMARY KEY,
    package TEXT NOT NULL,
    action TEXT NOT NULL,
    arguments TEXT NOT NULL,
    surface TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    answer TEXT CHECK (answer IN ('approved', 'refused')),
    answered INTEGER,
    used INTEGER
) WITHOUT ROWID;

CREATE TABLE rules (
    -- A number that was forgotten is never that of another rule.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    package TEXT NOT NULL,
    action TEXT NOT NULL,
    arguments TEXT NOT NULL,
    -- 'once', 'session' or 'always'.
    lasts TEXT NOT NULL,
    session TEXT NOT NULL,
    author TEXT NOT NULL,
    created INTEGER NOT NULL
);

CREATE TABLE questions (
    package TEXT NOT NULL,
    action TEXT NOT NULL,
    surface TEXT NOT NULL,
    asked INTEGER NOT NULL,
    PRIMARY KEY (package, action, surface)
) WITHOUT ROWID;

CREATE TABLE grants (
    package TEXT NOT NULL,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    author TEXT NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (package, kind, value)
) WITHOUT ROWID;

CREATE TABLE blocked (
    package TEXT NOT NULL,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    count INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    PRIMARY KEY (package, kind, value)
) WITHOUT ROWID;

CREATE TABLE budgets (
    day TEXT NOT NULL,
    -- Empty for all packages together.
    package TEXT NOT NULL,
    calls INTEGER NOT NULL,
    cents INTEGER NOT NULL,
    PRIMARY KEY (day, package)
) WITHOUT ROWID;

CREATE TABLE rates (
    name TEXT NOT NULL PRIMARY KEY,
    -- When the bucket is full again, in microseconds.
    full INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE pins (
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    value TEXT NOT NULL,
    pinned INTEGER NOT NULL,
    PRIMARY KEY (kind, subject)
) WITHOUT ROWID;
