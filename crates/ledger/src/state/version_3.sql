PRAGMA user_version = 3;

-- The answer to a first question is about one surface, which stands where a session would.
UPDATE rules SET lasts = 'first', session = substr(author, length('first call on ') + 1), author = 'terminal'
    WHERE author LIKE 'first call on _%';

-- Nobody ever asked it.
DROP TABLE questions;
