PRAGMA user_version = 2;

-- What the owner is shown of a question.
ALTER TABLE tickets ADD COLUMN shown TEXT NOT NULL DEFAULT '';
ALTER TABLE tickets ADD COLUMN session TEXT NOT NULL DEFAULT '';
