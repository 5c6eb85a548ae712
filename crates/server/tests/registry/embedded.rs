//! The suite on a file and a folder.

use crate::suite::world::World;
use crate::suite::{
    administering, backing_up, changes, checking, client, collecting, doors, hub, identities,
    lasting, pages, private, reading, refusals, reviewing, tested, together, tracing, watching,
    yanking,
};
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
    reading::a_bundle_has_bounds,
    reading::a_served_bundle_is_one_that_we_read_ourselves,
    reading::pages_are_brought_within_bounds,
    reading::parts_of_a_package_can_be_had,
    reading::the_highest_version_is_described,
    refusals::every_refusal_is_in_the_error_model,
    refusals::hostile_packages_are_refused_and_nothing_is_kept,
    refusals::text_that_not_every_database_keeps_is_refused,
    refusals::tokens_are_bound,
    changes::a_version_never_has_two_contents,
    changes::one_id_has_one_dialect_and_no_twins,
    yanking::what_is_yanked_is_hidden_and_still_downloaded,
    yanking::what_an_administrator_takes_back_stays_so,
    yanking::what_an_operator_takes_back_only_an_operator_offers_again,
    yanking::a_yank_for_security_is_told_by_every_door,
    changes::another_replica_finds_what_is_published,
    changes::a_damaged_part_breaks_no_other,
    lasting::what_was_answered_is_old_when_anything_changes,
    lasting::a_row_that_cannot_be_read_hides_no_other,
    lasting::what_no_client_reads_is_not_published,
    lasting::an_index_that_was_saved_is_brought_up_to_date,
    tested::a_report_is_kept_with_the_version_and_told_as_a_claim,
    tested::a_report_of_anything_else_is_refused,
    private::without_a_token_nothing_is_read,
    private::commands_on_pages_show_a_token,
    private::a_browser_shows_a_token_as_its_password,
    private::a_token_for_one_namespace_sees_no_other,
    administering::tokens_are_made_listed_and_revoked_over_http,
    administering::owners_publish_and_add_no_others,
    identities::an_identity_is_exchanged_once_and_told_with_the_version,
    identities::identities_that_are_not_good_are_refused,
    identities::issuers_that_lie_or_are_slow_are_not_waited_for,
    identities::rules_of_one_issuer_do_not_shadow_one_another,
    identities::keys_are_kept_and_changed,
    reviewing::what_waits_is_seen_by_its_publisher_and_reviewers_alone,
    reviewing::what_is_approved_is_offered_in_its_channel,
    reviewing::what_is_refused_stays_hidden_with_its_reason,
    reviewing::a_refusal_is_not_undone_by_who_came_before_it,
    checking::a_check_names_what_is_damaged,
    checking::a_check_reads_what_every_part_has_written,
    collecting::gc_removes_what_no_version_has,
    collecting::a_refused_publish_leaves_nothing,
    collecting::a_publish_keeps_its_file_whatever_gc_does,
    collecting::publishes_and_gc_at_the_same_moment_lose_nothing,
    backing_up::a_backup_comes_back,
    backing_up::files_belong_to_one_registry,
    backing_up::a_backup_holds_every_table,
    backing_up::a_file_that_two_versions_have_is_kept_once,
    backing_up::what_is_no_backup_is_refused,
    watching::what_happens_is_counted_without_words_from_outside,
    watching::each_request_is_told_of_once_and_without_secrets,
    watching::a_registry_that_closes_says_that_it_is_not_ready,
    watching::the_api_describes_itself,
    tracing::a_collector_is_told_what_a_request_spends_its_time_with,
    tracing::a_collector_that_is_away_is_told_of_once_and_is_found_again,
    tracing::a_collector_that_never_answers_slows_nobody,
    doors::servers_are_told_as_the_mcp_world_has_them,
    doors::servers_are_paged_searched_and_followed,
    doors::servers_are_found_by_a_part_of_their_names_page_by_page,
    doors::what_is_wrong_is_told_in_the_words_of_the_mcp_world,
    doors::install_manifests_are_listed_where_others_look_for_them,
    doors::capabilities_are_listed_in_a_catalog,
    hub::a_file_with_a_form_is_published_as_the_hub_does,
    together::what_is_held_back_is_told_by_no_door,
    together::a_form_of_the_hub_waits_like_everything_else,
    together::a_token_for_one_namespace_comes_by_every_door,
    together::what_is_counted_is_for_the_operator,
    together::a_form_may_be_as_large_as_a_package,
    client::the_client_does_all_that_a_registry_offers,
    pages::every_page_is_shown,
    pages::what_pages_are_made_with_is_kept_for_ever,
    pages::people_are_told_in_words_and_programs_in_the_model,
    pages::a_publisher_is_shown_with_its_keys_builds_and_owners,
    pages::hostile_text_is_only_text,
    pages::each_way_to_run_a_server_is_shown,
    pages::what_was_taken_back_is_not_offered_on_its_page,
    pages::a_chain_tells_of_tools_that_were_taken_back_for_security,
}
