//! The suite on `PostgreSQL` and an S3 server, where both are installed; `./test` sees to that.

use crate::suite::world::World;
use server::Blobs;
use testkit::bucket::Bucket;
use testkit::postgres::Postgres;

/// Set where both must be there.
const DEMANDED: &str = "HAFT_TEST_SERVERS";

#[tokio::test(flavor = "multi_thread")]
async fn the_same_holds_on_postgresql_and_s3() {
    let (Some(postgres), Some(bucket)) = (Postgres::start(), Bucket::start()) else {
        assert!(std::env::var_os(DEMANDED).is_none(), "PostgreSQL or moto is not installed");
        return;
    };
    let mut number = 0;
    let fresh = async || {
        number += 1;
        let folder = tempfile::tempdir().expect("a folder can be made");
        let place = format!("s3://{}/test-{number}", Bucket::NAME);
        let blobs = Blobs::open(&place, &bucket.settings()).expect("a bucket can be opened");
        World::new(postgres.database(), blobs, folder).await
    };
    crate::suite::all(fresh).await;
}
