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
    -- Its name in the MCP world, where it is a server.
    server_name TEXT UNIQUE,
    -- The highest version that was not taken back.
    latest TEXT,
    -- The number of its last change.
    changed BIGINT NOT NULL UNIQUE
);

CREATE INDEX packages_by_dialect ON packages (dialect, changed);

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
    -- When it was published, taken back or offered again.
    updated_at BIGINT NOT NULL,
    -- What other worlds are told of it, ready to be sent: none where it cannot be told there.
    server TEXT,
    server_words TEXT,
    listed TEXT,
    capability TEXT,
    PRIMARY KEY (package, version)
);

CREATE INDEX versions_by_digest ON versions (digest);
CREATE INDEX versions_by_update ON versions (updated_at);
CREATE INDEX versions_with_capability ON versions (package) WHERE capability IS NOT NULL;

CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    namespace TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);
