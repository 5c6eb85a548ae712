PRAGMA user_version = 8;

-- What agents call each action: a name that was given once is given to no other. See `names`.
CREATE TABLE names (
    exposed TEXT NOT NULL PRIMARY KEY,
    package TEXT NOT NULL,
    action TEXT NOT NULL,
    since INTEGER NOT NULL,
    UNIQUE (package, action)
) WITHOUT ROWID;

-- Tools that agents would have: see `wishes`.
CREATE TABLE wishes (
    tool TEXT NOT NULL,
    why TEXT NOT NULL,
    surface TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tool, why)
) WITHOUT ROWID;
