//! What must hold of a registry, whatever it is kept in.

pub(crate) mod administering;
pub(crate) mod care;
pub(crate) mod changes;
pub(crate) mod client;
pub(crate) mod doors;
pub(crate) mod hub;
pub(crate) mod identities;
pub(crate) mod packages;
pub(crate) mod pages;
pub(crate) mod private;
pub(crate) mod reading;
pub(crate) mod refusals;
pub(crate) mod reviewing;
pub(crate) mod shelf;
pub(crate) mod together;
pub(crate) mod watching;
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
    reviewing::a_refusal_is_not_undone_by_who_came_before_it(fresh().await).await;
    care::a_check_names_what_is_damaged(fresh().await).await;
    care::a_check_reads_what_every_part_has_written(fresh().await).await;
    care::gc_removes_what_no_version_has(fresh().await).await;
    care::a_publish_keeps_its_file_whatever_gc_does(fresh().await).await;
    care::publishes_and_gc_at_the_same_moment_lose_nothing(fresh().await).await;
    care::a_backup_comes_back(fresh().await).await;
    care::a_backup_holds_every_table(fresh().await).await;
    care::a_file_that_two_versions_have_is_kept_once(fresh().await).await;
    care::what_is_no_backup_is_refused(fresh().await).await;
    watching::what_happens_is_counted_without_words_from_outside(fresh().await).await;
    watching::each_request_is_told_of_once_and_without_secrets(fresh().await).await;
    watching::a_registry_that_closes_says_that_it_is_not_ready(fresh().await).await;
    watching::the_api_describes_itself(fresh().await).await;
    doors::servers_are_told_as_the_mcp_world_has_them(fresh().await).await;
    doors::servers_are_paged_searched_and_followed(fresh().await).await;
    doors::what_is_wrong_is_told_in_the_words_of_the_mcp_world(fresh().await).await;
    doors::install_manifests_are_listed_where_others_look_for_them(fresh().await).await;
    doors::capabilities_are_listed_in_a_catalog(fresh().await).await;
    hub::a_file_with_a_form_is_published_as_the_hub_does(fresh().await).await;
    together::what_is_held_back_is_told_by_no_door(fresh().await).await;
    together::a_form_of_the_hub_waits_like_everything_else(fresh().await).await;
    together::a_token_for_one_namespace_comes_by_every_door(fresh().await).await;
    together::what_is_counted_is_for_the_operator(fresh().await).await;
    together::a_form_may_be_as_large_as_a_package(fresh().await).await;
    client::the_client_does_all_that_a_registry_offers(fresh().await).await;
    pages::every_page_is_shown(fresh().await).await;
    pages::what_pages_are_made_with_is_kept_for_ever(fresh().await).await;
    pages::people_are_told_in_words_and_programs_in_the_model(fresh().await).await;
    pages::hostile_text_is_only_text(fresh().await).await;
}
