//! What must hold of a registry, whatever it is kept in.

pub(crate) mod changes;
pub(crate) mod packages;
pub(crate) mod pages;
pub(crate) mod reading;
pub(crate) mod refusals;
pub(crate) mod shelf;
pub(crate) mod world;

use world::World;

/// Runs everything, one after the other, each in a world of its own.
pub(crate) async fn all(mut fresh: impl AsyncFnMut() -> World) {
    reading::what_is_published_is_found_described_and_downloaded(fresh().await).await;
    reading::a_bundle_holds_what_was_published(fresh().await).await;
    reading::pages_are_brought_within_bounds(fresh().await).await;
    reading::parts_of_a_package_can_be_had(fresh().await).await;
    reading::the_highest_version_is_described(fresh().await).await;
    refusals::every_refusal_is_in_the_error_model(fresh().await).await;
    refusals::hostile_packages_are_refused_and_nothing_is_kept(fresh().await).await;
    refusals::tokens_are_bound(fresh().await).await;
    changes::a_version_never_has_two_contents(fresh().await).await;
    changes::one_id_has_one_dialect_and_no_twins(fresh().await).await;
    changes::what_is_yanked_is_hidden_and_still_downloaded(fresh().await).await;
    changes::another_replica_finds_what_is_published(fresh().await).await;
    changes::a_damaged_part_breaks_no_other(fresh().await).await;
    pages::every_page_is_shown(fresh().await).await;
    pages::what_pages_are_made_with_is_kept_for_ever(fresh().await).await;
    pages::people_are_told_in_words_and_programs_in_the_model(fresh().await).await;
    pages::hostile_text_is_only_text(fresh().await).await;
}
