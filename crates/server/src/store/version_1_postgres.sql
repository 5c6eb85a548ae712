-- Whoever listens hears of a change when it is committed, and not before.
CREATE FUNCTION haft_registry_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('haft_registry', NEW.number::text);
    RETURN NULL;
END
$$;

CREATE TRIGGER haft_registry_changed AFTER UPDATE ON feed FOR EACH ROW
    WHEN (OLD.number IS DISTINCT FROM NEW.number) EXECUTE FUNCTION haft_registry_changed();
