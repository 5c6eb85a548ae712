-- Which client a wish came from, as its owner knows it; unknown of older ones.
ALTER TABLE wishes ADD COLUMN client TEXT COLLATE "C";
