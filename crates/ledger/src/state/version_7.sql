PRAGMA user_version = 7;

-- Implementations that broke the last times they ran: see `implementations`.
CREATE TABLE broken (
    package TEXT NOT NULL,
    version TEXT NOT NULL,
    implementation TEXT NOT NULL,
    -- How often, one after the other.
    times INTEGER NOT NULL,
    -- Whether the last time leaves no doubt.
    is_sure INTEGER NOT NULL,
    why TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (package, version, implementation)
) WITHOUT ROWID;

-- What programs of this machine said of themselves: see `machine`.
CREATE TABLE machine (
    asked TEXT NOT NULL PRIMARY KEY,
    -- What the files looked like that the answer comes from.
    stamp TEXT NOT NULL,
    said TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
