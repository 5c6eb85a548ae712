//! The suite on a file and a folder.

use crate::suite::world::World;
use crate::suite::{care, changes, reading, refusals, watching};
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
    care::a_check_names_what_is_damaged,
    care::gc_removes_what_no_version_has,
    care::a_publish_keeps_its_file_whatever_gc_does,
    care::publishes_and_gc_at_the_same_moment_lose_nothing,
    care::a_backup_comes_back,
    care::what_is_no_backup_is_refused,
    watching::what_happens_is_counted_without_words_from_outside,
    watching::each_request_is_told_of_once_and_without_secrets,
    watching::a_registry_that_closes_says_that_it_is_not_ready,
    watching::the_api_describes_itself,
}
