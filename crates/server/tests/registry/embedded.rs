//! The suite on a file and a folder.

use crate::suite::world::World;
use crate::suite::{administering, changes, identities, private, reading, refusals, reviewing};
use server::Blobs;

async fn fresh() -> World {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let database = folder.path().join("registry ?%.db").display().to_string();
    let blobs = Blobs::folder(&folder.path().join("blobs")).expect("a folder can be opened");
    World::new(database, blobs, folder).await
}

macro_rules! embedded {
    ($($module:ident::$name:ident),+ $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            $module::$name(fresh().await).await;
        })+
    };
}

embedded! {
    reading::what_is_published_is_found_described_and_downloaded,
    reading::a_bundle_holds_what_was_published,
    reading::a_served_bundle_is_one_that_we_read_ourselves,
    reading::pages_are_brought_within_bounds,
    reading::parts_of_a_package_can_be_had,
    reading::the_highest_version_is_described,
    refusals::every_refusal_is_in_the_error_model,
    refusals::hostile_packages_are_refused_and_nothing_is_kept,
    refusals::tokens_are_bound,
    changes::a_version_never_has_two_contents,
    changes::one_id_has_one_dialect_and_no_twins,
    changes::what_is_yanked_is_hidden_and_still_downloaded,
    changes::another_replica_finds_what_is_published,
    changes::a_damaged_part_breaks_no_other,
    private::without_a_token_nothing_is_read,
    private::a_token_for_one_namespace_sees_no_other,
    administering::tokens_are_made_listed_and_revoked_over_http,
    administering::owners_publish_and_add_no_others,
    identities::an_identity_is_exchanged_once_and_told_with_the_version,
    identities::identities_that_are_not_good_are_refused,
    identities::issuers_that_lie_or_are_slow_are_not_waited_for,
    identities::keys_are_kept_and_changed,
    reviewing::what_waits_is_seen_by_its_publisher_and_reviewers_alone,
    reviewing::what_is_approved_is_offered_in_its_channel,
    reviewing::what_is_refused_stays_hidden_with_its_reason,
}
