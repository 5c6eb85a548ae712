-- The number of the last change. Whoever changes anything raises it first and keeps its row locked until the
-- end, so that changes become visible in the order of their numbers.
CREATE TABLE feed (number BIGINT NOT NULL);
INSERT INTO feed (number) VALUES (0);

CREATE TABLE packages (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- The id as it looks to systems that see no difference between letters of either case.
    folded TEXT NOT NULL UNIQUE,
    namespace TEXT NOT NULL,
    dialect TEXT NOT NULL,
    -- The highest version that was not taken back.
    latest TEXT,
    -- The number of its last change.
    changed BIGINT NOT NULL UNIQUE
);

CREATE TABLE versions (
    package TEXT NOT NULL REFERENCES packages (id),
    version TEXT NOT NULL,
    digest TEXT NOT NULL,
    size BIGINT NOT NULL,
    manifest_path TEXT NOT NULL,
    manifest {bytes} NOT NULL,
    -- What is answered, ready to be sent.
    describe TEXT NOT NULL,
    found TEXT NOT NULL,
    -- What the index is made from, ready to be loaded.
    entry {bytes} NOT NULL,
    runtime TEXT NOT NULL,
    signature TEXT NOT NULL,
    publisher TEXT NOT NULL,
    published_at BIGINT NOT NULL,
    yanked_at BIGINT,
    yank_reason TEXT,
    PRIMARY KEY (package, version)
);

CREATE INDEX versions_by_digest ON versions (digest);

CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    namespace TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);

-- Package files that were or are being removed because no version has them. Whoever publishes the same bytes
-- meanwhile sees it and puts the file there again.
CREATE TABLE removals (
    digest TEXT NOT NULL PRIMARY KEY,
    marked_at BIGINT NOT NULL,
    removed_at BIGINT
);
