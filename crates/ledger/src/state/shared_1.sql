-- Everything that is kept in a file but what is about one machine, for replicas that share it. Text is in the order of its
-- bytes, as there.

CREATE TABLE haft_state (
    -- There is one row.
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL
);

CREATE TABLE tickets (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    package TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    arguments TEXT COLLATE "C" NOT NULL,
    surface TEXT COLLATE "C" NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    answer TEXT COLLATE "C" CHECK (answer IN ('approved', 'refused')),
    answered BIGINT,
    used BIGINT,
    -- What the owner is shown of a question.
    shown TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL
);

CREATE TABLE rules (
    -- A number that was forgotten is never that of another rule.
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    package TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    arguments TEXT COLLATE "C" NOT NULL,
    -- 'once', 'session', 'always' or 'first'.
    lasts TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    author TEXT COLLATE "C" NOT NULL,
    created BIGINT NOT NULL
);
CREATE INDEX rules_of ON rules (package);

CREATE TABLE grants (
    package TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    author TEXT COLLATE "C" NOT NULL,
    created BIGINT NOT NULL,
    PRIMARY KEY (package, kind, value)
);

CREATE TABLE blocked (
    package TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    count BIGINT NOT NULL,
    last_seen BIGINT NOT NULL,
    PRIMARY KEY (package, kind, value)
);

CREATE TABLE budgets (
    day TEXT COLLATE "C" NOT NULL,
    -- Empty for all packages together.
    package TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    cents BIGINT NOT NULL,
    PRIMARY KEY (day, package)
);

CREATE TABLE rates (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- When the bucket is full again, in microseconds.
    "full" BIGINT NOT NULL
);

CREATE TABLE pins (
    kind TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    pinned BIGINT NOT NULL,
    PRIMARY KEY (kind, subject)
);

-- Where a package was when it was last called.
CREATE TABLE places (
    package TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    place TEXT COLLATE "C" NOT NULL
);

-- How calls went: by hour, by day once that is a while ago, and all together once it is long ago.
CREATE TABLE spans (
    package TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    implementation TEXT COLLATE "C" NOT NULL,
    begins BIGINT NOT NULL,
    lasts BIGINT NOT NULL,
    failure TEXT COLLATE "C" NOT NULL,
    bucket BIGINT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (package, version, action, implementation, begins, lasts, failure, bucket)
);

-- What all spans of a series come to, and its last calls one by one.
CREATE TABLE totals (
    package TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    implementation TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    micros BIGINT NOT NULL,
    first_used BIGINT NOT NULL,
    last_used BIGINT NOT NULL,
    weight DOUBLE PRECISION NOT NULL,
    weight_well DOUBLE PRECISION NOT NULL,
    weight_micros DOUBLE PRECISION NOT NULL,
    recent TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (package, version, action, implementation)
);

-- The day on which spans were last folded.
CREATE TABLE folded (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    day BIGINT NOT NULL
);

-- How the tests of a version went the last time.
CREATE TABLE tests (
    package TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    total BIGINT NOT NULL,
    passed BIGINT NOT NULL,
    flaky BIGINT NOT NULL,
    at BIGINT NOT NULL,
    latency BIGINT,
    PRIMARY KEY (package, version)
);

-- What was found to be worse than before.
CREATE TABLE regressions (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    package TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    implementation TEXT COLLATE "C" NOT NULL,
    what TEXT COLLATE "C" NOT NULL,
    against TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    before DOUBLE PRECISION NOT NULL,
    after DOUBLE PRECISION NOT NULL,
    chance DOUBLE PRECISION NOT NULL,
    seen BIGINT NOT NULL,
    over BIGINT,
    written BOOLEAN NOT NULL
);
CREATE INDEX regressions_of ON regressions (package);

-- What went into the last calls and came out of them, as digests that mean nothing without the key.
CREATE TABLE flows (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    package TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    began BIGINT NOT NULL,
    ended BIGINT NOT NULL,
    inputs TEXT COLLATE "C" NOT NULL,
    outputs TEXT COLLATE "C" NOT NULL
);

CREATE TABLE flow_key (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    key BYTEA NOT NULL
);

-- Implementations that broke the last times they ran.
CREATE TABLE broken (
    package TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    implementation TEXT COLLATE "C" NOT NULL,
    times BIGINT NOT NULL,
    is_sure BOOLEAN NOT NULL,
    why TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (package, version, implementation)
);

-- What agents call each action: a name that was given once is given to no other.
CREATE TABLE names (
    exposed TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    package TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    since BIGINT NOT NULL,
    UNIQUE (package, action)
);

-- Tools that agents would have.
CREATE TABLE wishes (
    tool TEXT COLLATE "C" NOT NULL,
    why TEXT COLLATE "C" NOT NULL,
    surface TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tool, why)
);

-- What clients are handed to bring back to any replica is sealed with it.
CREATE TABLE seal_key (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    key BYTEA NOT NULL
);

-- The logs of the replicas, each line as it is in its file. A replica is called by the public key that signs its log.
CREATE TABLE audit_lines (
    replica TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    line TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (replica, seq)
);

-- The signed end of each log, as far as its lines are there.
CREATE TABLE audit_heads (
    replica TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    head TEXT COLLATE "C" NOT NULL
);
