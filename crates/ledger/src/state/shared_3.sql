-- What one replica was asked and only another can answer, which has the call or the task that it is about. The texts are
-- sealed with the key that replicas share.
CREATE TABLE inquiries (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- The process that it is for.
    replica TEXT COLLATE "C" NOT NULL,
    request TEXT COLLATE "C" NOT NULL,
    -- When somebody last waited for the answer, by the clock of the database.
    awaited BIGINT NOT NULL,
    -- How often the other has said that it works on it.
    beats BIGINT NOT NULL,
    answer TEXT COLLATE "C"
);
CREATE INDEX inquiries_of ON inquiries (replica);
