//! What to do about a database, a folder or a bucket that refuses.

use server::Trouble;

/// What would help, where it is known.
pub(crate) fn hint(trouble: &Trouble) -> Option<&'static str> {
    Some(match trouble {
        Trouble::NoRoom => {
            "make room there; nothing half-written is left, and it goes on by itself"
        }
        Trouble::ReadOnly => {
            "mount it for writing, or name another place with --home, --database or --blobs"
        }
        Trouble::NotAllowed => {
            "run it as the user whom it belongs to, or give that user the right to write there"
        }
        Trouble::InTheWay => {
            "move it away, or name another place with --home, --database or --blobs"
        }
        Trouble::Missing => "make the folder first, or name another",
        Trouble::NoDatabaseFile => {
            "name the registry's database with --database or --home; `haft registry restore` makes one of a backup"
        }
        Trouble::Damaged => "`haft registry restore` brings a backup back, into another place",
        Trouble::Row => {
            "`haft registry check` names it; publishing the version again mends its row"
        }
        Trouble::Held => "end the program that holds it; several replicas need PostgreSQL",
        Trouble::Address(_) => {
            "write postgres://USER@HOST:PORT/DATABASE, with `?sslmode=verify-full` for TLS"
        }
        Trouble::AddressFile => {
            "look at sslrootcert, sslcert and sslkey in the address, or at the folder of its socket"
        }
        Trouble::UnknownHost | Trouble::NoWay => {
            "look at the host in the address, and whether this machine can reach it"
        }
        Trouble::NobodyListens => {
            "start the server, or look at the port in the address and at what is between"
        }
        Trouble::NoAnswer => "look whether the server runs and whether a firewall is between",
        Trouble::CutOff | Trouble::Restarting => "try again when the server is up",
        Trouble::Crowded => "raise max_connections of the server; each replica takes up to 16",
        Trouble::Tls(_) => {
            "`?sslmode=verify-full&sslrootcert=FILE` in the address names whom to trust; sslmode=disable is for a server without TLS, on a network of your own"
        }
        Trouble::Login(_) => {
            "look at the user in the address and the password in HAFT_DATABASE_URL, PGPASSWORD or ~/.pgpass, and at pg_hba.conf of the server"
        }
        Trouble::NoDatabase(_) => "`createdb` makes it; the tables are made by themselves",
        Trouble::TooOld(_) => "bring the server to a newer version",
        Trouble::NoBucket => {
            "make the bucket first, or look at --blobs, AWS_REGION and AWS_ENDPOINT"
        }
        Trouble::Keys => {
            "look at AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and whether they may read, write and list the bucket"
        }
        Trouble::Unforeseen(_) => return None,
    })
}
