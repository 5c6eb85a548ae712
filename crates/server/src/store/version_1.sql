-- The number of the last change. Whoever changes anything raises it first and keeps its row locked until the
-- end, so that changes become visible in the order of their numbers.
CREATE TABLE feed (number BIGINT NOT NULL);
INSERT INTO feed (number) VALUES (0);

CREATE TABLE packages (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- What the id and the name look like: nobody has one that people take for another's.
    look TEXT NOT NULL UNIQUE,
    look_of_name TEXT NOT NULL UNIQUE,
    namespace TEXT NOT NULL,
    dialect TEXT NOT NULL,
    -- Its name in the MCP world, where it is a server.
    server_name TEXT {by_bytes} UNIQUE,
    -- The highest stable version that was not taken back.
    latest TEXT,
    -- The same among those that are stable or beta.
    latest_beta TEXT,
    -- The number of its last change.
    changed BIGINT NOT NULL UNIQUE
);

CREATE INDEX packages_by_dialect ON packages (dialect, changed);
CREATE INDEX packages_by_namespace ON packages (namespace, changed);

CREATE TABLE versions (
    package TEXT NOT NULL REFERENCES packages (id),
    version TEXT {by_bytes} NOT NULL,
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
    -- The keys that have signed every file, with spaces between them.
    signers TEXT NOT NULL,
    publisher TEXT NOT NULL,
    published_at BIGINT NOT NULL,
    yanked_at BIGINT,
    yank_reason TEXT,
    -- 1 where it endangers those who have it.
    yank_security BIGINT,
    -- The id of the token it was taken back with, and as what: publish, admin, or operator of the registry.
    yanked_by TEXT,
    yanked_as TEXT,
    -- stable, beta, quarantine or rejected.
    channel TEXT NOT NULL,
    -- What the reviewer said last.
    review_reason TEXT,
    -- Where it was built, as JSON, when that was proved.
    provenance TEXT,
    -- When it was published, reviewed, taken back or offered again.
    updated_at BIGINT NOT NULL,
    -- What other worlds are told of it, ready to be sent: none where it cannot be told there.
    server TEXT,
    listed TEXT,
    capability TEXT,
    PRIMARY KEY (package, version)
);

CREATE INDEX versions_by_digest ON versions (digest);
-- The queue of reviewers.
CREATE INDEX versions_waiting ON versions (published_at) WHERE channel = 'quarantine';

-- Everything that reviewers have said; nothing is ever changed or removed here.
CREATE TABLE reviews (
    package TEXT NOT NULL,
    version TEXT NOT NULL,
    -- The number of the change it was.
    number BIGINT NOT NULL PRIMARY KEY,
    channel TEXT NOT NULL,
    reason TEXT NOT NULL,
    -- The id of the token it was said with.
    reviewer TEXT NOT NULL,
    at BIGINT NOT NULL
);

-- Namespaces whose tokens may publish a package beside those of its own.
CREATE TABLE owners (
    package TEXT NOT NULL REFERENCES packages (id),
    namespace TEXT NOT NULL,
    added_by TEXT NOT NULL,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (package, namespace)
);
CREATE INDEX versions_by_update ON versions (updated_at);
CREATE INDEX versions_with_capability ON versions (package) WHERE capability IS NOT NULL;

CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    namespace TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    -- The identity it was given for, as JSON, when it was given for one.
    provenance TEXT
);

-- Who may publish by an identity that an issuer has sworn.
CREATE TABLE publishers (
    id TEXT NOT NULL PRIMARY KEY,
    issuer TEXT NOT NULL,
    namespace TEXT NOT NULL,
    -- The rule, as JSON.
    rule TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX publishers_by_issuer ON publishers (issuer);

-- Identities that were exchanged already, until somewhat after their end.
CREATE TABLE identities (
    hash TEXT NOT NULL PRIMARY KEY,
    expires_at BIGINT NOT NULL
);

CREATE INDEX identities_by_end ON identities (expires_at);

-- Package files that were or are being removed because no version has them. Whoever publishes the same bytes
-- meanwhile sees it and puts the file there again.
CREATE TABLE removals (
    digest TEXT NOT NULL PRIMARY KEY,
    marked_at BIGINT NOT NULL,
    removed_at BIGINT
);
