//! The suite on a file and a folder.

use crate::suite::world::World;
use crate::suite::{changes, pages, reading, refusals};
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
    pages::every_page_is_shown,
    pages::what_pages_are_made_with_is_kept_for_ever,
    pages::people_are_told_in_words_and_programs_in_the_model,
    pages::hostile_text_is_only_text,
}
