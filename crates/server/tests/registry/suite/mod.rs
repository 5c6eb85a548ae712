//! What must hold of a registry, whatever it is kept in.

pub(crate) mod administering;
pub(crate) mod changes;
pub(crate) mod identities;
pub(crate) mod packages;
pub(crate) mod private;
pub(crate) mod reading;
pub(crate) mod refusals;
pub(crate) mod reviewing;
pub(crate) mod world;

use world::World;

/// Runs everything, one after the other, each in a world of its own.
pub(crate) async fn all(mut fresh: impl AsyncFnMut() -> World) {
    reading::what_is_published_is_found_described_and_downloaded(fresh().await).await;
    reading::a_bundle_holds_what_was_published(fresh().await).await;
    reading::a_served_bundle_is_one_that_we_read_ourselves(fresh().await).await;
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
    private::without_a_token_nothing_is_read(fresh().await).await;
    private::a_token_for_one_namespace_sees_no_other(fresh().await).await;
    administering::tokens_are_made_listed_and_revoked_over_http(fresh().await).await;
    administering::owners_publish_and_add_no_others(fresh().await).await;
    identities::an_identity_is_exchanged_once_and_told_with_the_version(fresh().await).await;
    reviewing::what_waits_is_seen_by_its_publisher_and_reviewers_alone(fresh().await).await;
    reviewing::what_is_approved_is_offered_in_its_channel(fresh().await).await;
    reviewing::what_is_refused_stays_hidden_with_its_reason(fresh().await).await;
}
