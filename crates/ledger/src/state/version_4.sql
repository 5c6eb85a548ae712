PRAGMA user_version = 4;

-- Where a package was when it was last called. It allows nothing: what it says of itself can be read there.
CREATE TABLE places (
    package TEXT NOT NULL PRIMARY KEY,
    place TEXT NOT NULL
) WITHOUT ROWID;
