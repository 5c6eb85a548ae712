PRAGMA user_version = 6;

-- What went into the last calls and came out of them, as digests that mean nothing without the key: see `flows`.
CREATE TABLE flows (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    package TEXT NOT NULL,
    version TEXT NOT NULL,
    action TEXT NOT NULL,
    began INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    -- Each as JSON: pairs of a name or path and a digest.
    inputs TEXT NOT NULL,
    outputs TEXT NOT NULL
);

-- What the digests of this home are made with.
CREATE TABLE flow_key (
    only INTEGER NOT NULL PRIMARY KEY CHECK (only = 1),
    key BLOB NOT NULL
) WITHOUT ROWID;
