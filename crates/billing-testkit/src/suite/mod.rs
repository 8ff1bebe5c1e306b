//! The contract suite of the ports. It tests every statement of their documentation on any store.
//!
//! [`store_contract!`](crate::store_contract) generates a test for each function. Each function creates its own organization
//! with fresh identifiers, so tests can share a database and run in parallel. No function expects an empty store. Like use
//! cases, the functions open a transaction per step.

#![allow(missing_docs, reason = "a test's name is its sentence")]

pub mod access;
pub mod accounts;
pub mod audit;
pub mod books;
pub mod catalog;
pub mod charges;
pub mod contracts;
pub mod corrections;
pub mod credits;
pub mod document_files;
pub mod documents;
pub mod event_keys;
pub mod filters;
pub mod formats;
pub mod holds;
pub mod imports;
pub mod inspection;
pub mod isolation;
pub mod ledger;
pub mod limits;
pub mod lists;
pub mod locks;
pub mod notifications;
pub mod numbers;
pub mod paper;
pub mod reading;
pub mod refused;
pub mod replay_log;
pub mod revisions;
pub mod round_trip;
pub mod runs;
pub mod sandbox;
pub mod search;
pub mod transactions;
pub mod usage;
pub mod webhooks;
mod world;

use world::*;

/// Generates a `#[test]` for every function of the [suite](crate::suite) for one store.
///
/// The expression returns a value that implements [`Store`](billing_domain::ports::Store). It is evaluated once per test, and
/// its value lives as long as the test. Attributes before the expression apply to every test.
///
/// ```
/// # // A doc test is compiled without `cfg(test)`, which leaves the tests out.
/// billing_testkit::store_contract!(my_store());
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! store_contract {
    ($(#[$meta:meta])* $make:expr) => {
        $crate::store_contract! { @modules [$(#[$meta])*] [$make]
            access {
                administrators_and_keys_come_back_with_every_field
                an_e_mail_is_taken_in_every_organization
                a_log_in_name_is_taken_in_every_organization
                api_keys_are_listed_by_creation_then_by_reference
                an_organizations_name_is_taken_once
                a_key_remembers_its_last_use_and_can_be_deleted_once
                administrators_of_an_organization_are_listed_by_e_mail
                an_administrator_who_is_changed_keeps_the_rest
                an_administrator_has_the_role_they_were_made_with
                all_sessions_of_an_administrator_end_together
                the_sessions_of_an_administrator_are_listed_and_end_by_their_reference
                a_key_that_gives_way_keeps_the_rest
                sessions_begin_are_used_and_end
                purged_sessions_are_those_that_began_before
                a_token_can_be_ended_twice_and_forgotten_once_expired
                the_keys_of_several_tokens_come_in_the_order_of_the_tokens
                signing_secrets_come_newest_first_by_purpose
            }
            accounts {
                an_account_begins_with_nothing_and_keeps_what_is_unapplied
                documents_of_an_account_are_found_by_what_is_left_of_them
                open_documents_come_earliest_due_date_first_until_they_are_enough
                payments_and_refunds_come_back_with_every_field
                payments_are_found_by_what_is_left_of_them
                applications_come_and_go
                what_is_written_off_adds_up
                what_is_due_is_summed_up_by_day
                a_statement_has_everything_that_changed_what_is_owed
                payments_are_listed_as_they_were_recorded
                another_organization_or_account_has_none_of_it
            }
            audit {
                an_entry_comes_back_with_every_field
                entries_come_newest_first_in_parts
                each_field_of_a_filter_narrows_the_entries
                another_organization_has_entries_of_its_own
                an_entry_that_is_undone_is_not_there
            }
            books {
                a_contracts_documents_come_by_creation_void_ones_too_but_no_issued_children
                documents_of_a_book_say_how_far_they_have_come
                documents_in_force_are_found_by_their_places
                documents_of_a_book_are_found_by_reference_children_too
                documents_with_events_are_those_with_one_that_is_not_deleted
                books_read_together_are_as_those_read_alone
                contracts_and_customers_come_by_reference
                sums_of_families_begin_at_zero_and_are_added_to
                sums_of_a_family_that_is_not_there_are_corrupt
                a_draft_put_out_of_force_keeps_what_it_said
                a_number_taken_twice_is_corrupt
                a_draft_updated_to_a_taken_place_is_corrupt
            }
            catalog {
                everything_of_the_catalog_comes_back_with_every_field
                everything_of_the_catalog_comes_back_without_optional_fields
                every_price_model_comes_back_with_its_own_digits
                references_are_taken_once_without_ending_the_transaction
                a_number_prefix_is_taken_once_also_by_an_update
                a_number_prefix_belongs_to_the_entity_whose_documents_have_it
                an_entity_is_held_as_it_was_read_or_not_at_all
                an_entity_is_deleted_with_its_series_and_words
                updates_replace_the_profile_and_nothing_else
                an_update_of_what_is_not_there_says_so
                lists_are_ordered_by_creation_then_by_reference
                lists_come_in_pages_with_the_total
                lists_by_references_leave_out_what_is_not_there
                at_most_two_namesakes_are_answered
            }
            charges {
                a_charge_comes_back_with_every_field
                a_charge_comes_back_without_optional_fields
                a_charges_reference_is_taken_once_in_its_organization
                a_revision_takes_the_charges_place_and_the_one_before_is_kept
                revising_a_superseded_charge_is_contended
                a_contracts_book_has_its_charges_deleted_ones_too
                charges_come_by_creation_then_by_reference_in_pages
                each_field_of_a_filter_narrows_the_charges
                another_organization_has_charges_of_its_own
            }
            contracts {
                a_contract_comes_back_with_every_field_and_segment
                a_contract_comes_back_without_optional_fields
                a_customers_contracts_come_by_creation_in_pages
                recent_contracts_of_the_customer_with_the_same_days_are_found
                contracts_metering_looks_at_every_version_of_every_product
                contracts_metering_have_the_terms_that_stand_whatever_was_read_of_others
                stamps_change_with_what_they_stand_for
                contracts_have_stamps_by_what_they_meter
                due_contracts_come_longest_due_first_then_by_reference
                due_contracts_come_in_pages_after_the_last_one
                the_next_due_instant_can_be_moved_and_cleared
                contracts_that_ever_named_an_entity_are_looked_at_again
                due_contracts_of_all_organizations_come_in_one_order
                a_version_adds_to_the_one_before
                a_version_that_does_not_follow_is_corrupt
                a_version_rolled_back_leaves_the_one_before
            }
            corrections {
                a_draft_is_updated_and_comes_back
                an_update_rolled_back_leaves_the_draft
                an_updated_draft_is_found_by_the_products_it_has_now
                a_draft_is_not_updated_once_it_is_none
                an_issued_document_is_voided_once_and_keeps_what_it_says
                a_voided_document_frees_its_place
                documents_that_name_a_parent_come_by_creation_void_ones_too
                what_payments_and_credits_say_is_replaced_and_read_back
                a_document_that_is_not_there_cannot_be_settled
                a_void_document_is_never_issued_again
            }
            credits {
                given_credit_comes_back_with_every_field
                sold_credit_comes_back_with_the_invoice_that_sold_it
                an_invoice_sells_one_grant
                a_grant_has_the_present_state_and_net_amount_of_its_sale
                grants_are_listed_by_creation
                each_field_of_a_filter_narrows_the_grants
                grants_of_customers_are_those_with_something_left_named_or_sold
                what_sales_have_due_or_written_off_is_summed_up_by_account
                draws_add_up_in_their_grants_and_a_void_takes_them_back
                draws_that_cannot_be_are_corrupt
                draws_are_listed_by_time_document_and_position
                another_organization_has_no_credit
            }
            document_files {
                the_first_file_of_a_document_in_a_form_stays
                only_issued_documents_of_the_key_have_files
                of_files_made_at_once_one_stays
            }
            documents {
                a_draft_comes_back_with_every_field
                a_void_document_leaves_its_slot
                a_second_regular_document_of_a_slot_is_corrupt
                a_second_document_with_a_number_is_corrupt
                a_document_is_opened_under_its_entitys_present_prefix
                a_draft_is_issued_once_and_keeps_what_it_says
                documents_written_together_are_as_those_written_alone
                a_draft_is_voided_once_and_never_issued_then
            }
            event_keys {
                kept_keys_come_back_to_the_byte_by_their_keys
                a_delivery_replaces_facts_and_response_of_a_key_if_nobody_else_did
                a_key_belongs_to_one_customer_of_one_organization
                a_key_outlives_its_event
                an_answer_stays_the_same_wherever_its_event_goes
                a_key_that_is_there_makes_the_transaction_contended
                of_two_twins_the_second_sees_the_first
            }
            filters {
                documents_are_listed_by_creation_then_by_reference_in_pages
                each_field_of_a_filter_narrows_the_list
                the_state_of_a_filter_is_derived
                what_is_settled_counts_towards_the_state
                a_document_voided_after_its_issue_is_void
            }
            formats {
                a_format_comes_back_with_every_field
                every_kind_of_report_mapping_comes_back
                what_is_no_format_is_not_there
                a_formats_reference_and_name_are_taken_once_without_ending_the_transaction
                a_long_name_is_a_name_like_any_other
                a_formats_next_version_leaves_those_before_as_they_were
                a_formats_next_version_may_not_have_anothers_name
                a_formats_version_that_does_not_follow_is_contended
                a_formats_version_rolled_back_leaves_the_one_before
                formats_come_by_creation_then_by_reference_in_any_part
            }
            holds {
                a_hold_comes_back_with_its_entries_in_order
                an_entry_is_open_until_it_ends_or_the_hold_expires
                holds_are_listed_by_creation
                expired_holds_are_deleted_in_parts
                another_organization_has_no_holds
            }
            imports {
                an_import_comes_back_as_it_was_kept_last
                imports_come_newest_first_narrowed_and_in_pages
                what_an_import_made_comes_part_by_part
                who_sends_the_key_of_a_forgotten_event_sends_a_new_one
                an_import_is_held_by_one_transaction_at_a_time
                imports_are_forgotten_with_what_they_made
            }
            inspection {
                every_organization_is_seen
                the_last_verification_is_kept
                contracts_come_by_reference_after_the_last_one
                the_totals_of_a_contract_are_counted_again
                the_totals_of_a_contract_are_those_that_are_kept
                events_whose_document_is_lost_are_counted
                series_without_a_gap_are_whole
                a_series_with_a_gap_is_named
                what_nobody_touched_has_its_seals
            }
            isolation {
                another_organization_sees_no_keys
                another_organization_sees_no_catalog
                another_organization_changes_no_catalog
                another_organization_may_use_the_same_references
                another_organization_has_formats_of_its_own
                another_organization_sees_no_contracts
                another_organization_sees_no_usage
                another_organization_sees_no_documents
                another_organization_has_its_own_numbers
                a_reference_alone_tells_whose_it_is_and_another_customer_has_none_of_it
                another_organization_changes_no_events
                another_organization_corrects_no_documents
                another_organization_inspects_nothing
                another_customer_corrects_nothing
                another_customer_reaches_neither_contract_nor_document
            }
            round_trip {
                quantities_keep_their_digits
                amounts_keep_every_minor_unit
                instants_keep_their_microseconds
                days_keep_from_the_first_year_to_the_last
                texts_keep_every_character
            }
            ledger {
                the_lines_of_a_draft_adjustment_are_replaced
                the_amounts_of_lines_are_in_the_documents_currency
                many_lines_are_kept_in_their_order
                an_issued_document_has_the_lines_it_was_issued_with
                lines_of_what_is_no_draft_refuse_every_change
                what_documents_in_force_bill_of_a_period_is_documented
                lines_have_the_converted_tax_of_their_document
                void_documents_document_nothing
            }
            limits {
                a_limit_comes_back_with_every_field
                limits_of_all_metrics_are_listed_by_creation
                a_watched_customer_has_watched_contracts
                contracts_with_drafts_are_found_by_account
                all_accounts_of_customers_are_locked
                another_organization_has_no_limits
            }
            lists {
                documents_come_in_every_order_from_any_place
                documents_are_ordered_by_what_issued_ones_have
                documents_are_found_by_what_finance_asks_for
                a_change_of_a_document_is_found_by_its_instant
                a_draft_has_the_purchase_order_number_of_its_contract
                what_is_overdue_follows_from_each_entitys_day
                documents_add_up_by_currency
                contracts_are_found_without_a_customer
                contracts_are_in_their_state_by_their_entitys_day
                the_numbers_of_contracts_come_by_reference
                a_list_by_the_last_change_continues_after_a_position
                metadata_finds_what_has_each_key_with_its_value
                customers_are_found_by_name_email_and_tax_number
                objects_of_each_kind_have_names
                another_organization_lists_nothing
            }
            locks {
                a_held_contract_makes_check_then_open_safe
                a_contract_held_shared_can_be_read_but_not_changed_by_others
                contracts_held_together_in_any_order_end_in_no_deadlock
                an_entity_is_not_deleted_while_a_customer_begins_to_name_it
                a_held_draft_is_issued_by_one_alone
                held_totals_lose_no_update
                totals_held_in_any_order_end_in_no_deadlock
            }
            numbers {
                document_numbers_count_from_one_by_entity_and_kind
                numbers_have_no_gaps_under_threads_and_roll_backs
                an_entity_has_given_numbers_from_its_first_on
                a_prefix_and_its_first_number_never_pass_each_other
                contract_numbers_count_from_one_without_gaps_under_threads
                numbers_in_a_contract_count_from_one
            }
            paper {
                a_bank_account_comes_back_and_is_updated
                bank_accounts_come_by_creation_in_pages
                the_newest_exchange_rate_on_a_day_or_before_counts
                an_exchange_rate_takes_the_place_of_the_days_other_one
                another_organization_sees_and_changes_no_accounts_and_rates
                the_image_of_a_logo_is_stored_once_in_its_organization
            }
            reading {
                events_come_by_timestamp_then_reference_in_pages
                a_document_bills_each_event_once_as_it_was_when_it_was_issued
                each_field_of_a_filter_narrows_the_events
                labels_narrow_the_events_by_their_values_as_sent
                deleted_events_pass_no_filter
                what_counts_is_visited_until_the_visitor_has_enough
                report_data_is_visited_where_there_is_any
                reported_events_come_in_order_with_names_and_numbers
                many_events_are_visited_one_by_one
                an_event_names_every_document_of_its_period_that_carries_it
                a_document_bills_events_as_they_were_when_it_was_issued
                superseded_revisions_of_events_come_by_event
                documents_by_references_leave_out_what_is_not_there
                another_organization_reads_no_usage
            }
            refused {
                refused_usage_of_several_servers_adds_up
                refused_usage_comes_newest_day_first_narrowed_and_in_pages
                old_refused_usage_is_forgotten_and_others_have_their_own
            }
            replay_log {
                a_kept_request_comes_back_to_the_byte
                a_kept_request_is_told_by_organization_path_and_key
                what_was_kept_before_an_instant_does_not_come_back
                a_request_kept_again_takes_the_place_of_the_older_one
                a_kept_request_rolled_back_was_never_kept
                a_key_is_held_by_one_transaction_at_a_time
                who_held_a_key_after_another_sees_what_was_kept
                a_key_held_twice_by_one_transaction_is_held
                other_keys_are_held_beside_a_held_one
                purging_forgets_the_oldest_first_and_about_as_many_as_asked
            }
            revisions {
                a_revision_takes_the_events_place_and_the_one_before_is_kept
                revising_what_is_superseded_already_is_contended
                several_events_are_revised_at_once_or_none_is
                a_revision_rolled_back_leaves_no_trace
                all_events_of_a_document_move_and_their_revisions_stay
                events_of_one_period_of_a_product_move_alone
                a_document_has_events_in_any_of_its_contracts_periods
                a_total_is_counted_again_from_events_that_are_not_deleted
                a_total_of_many_events_is_counted_again
                an_adjustment_has_events_of_the_period_it_corrects
            }
            notifications {
                notifications_come_back_with_every_field_once_they_are_numbered
                each_field_of_a_filter_narrows_the_notifications
                a_subject_uses_a_sequence_once
                unnumbered_notifications_come_by_reference_and_name_those_that_wait
                one_server_at_a_time_has_the_lease_of_an_organization
                notices_come_when_their_instants_have_come
                documents_and_contracts_count_their_notifications
                old_notifications_are_deleted_from_the_beginning_of_the_feed
                issued_documents_without_a_notification_are_found
                another_organization_has_a_feed_of_its_own
            }
            runs {
                a_run_comes_back_as_it_was_kept_last
                runs_come_newest_first_narrowed_and_in_pages
                runs_are_forgotten_one_by_one_or_when_they_are_old
            }
            sandbox {
                a_live_database_has_no_clock_and_a_sandbox_has_the_last_one
                the_next_due_instant_is_the_first_one_of_contracts_and_notices
            }
            search {
                everything_is_found_by_what_it_is_told_by
                names_are_found_by_how_they_begin_after_what_is_exact
                words_are_found_inside_names_addresses_and_numbers
            }
            transactions {
                a_store_is_ready
                a_committed_transaction_is_seen_by_the_next
                a_transaction_sees_its_own_writes
                a_rolled_back_transaction_leaves_nothing
                a_rolled_back_update_and_delete_leave_everything
                a_rolled_back_number_is_given_again
                an_undone_part_takes_only_its_own_writes_with_it
                a_part_is_undone_with_its_transaction
                nothing_uncommitted_is_seen_and_a_reader_waits_for_no_writer
                a_reader_keeps_one_view_while_others_commit
                a_taken_row_does_not_end_the_transaction
                the_number_of_organizations_grows_with_each
            }
            usage {
                an_event_comes_back_with_every_field
                of_many_events_those_that_are_there_are_known
                an_event_comes_back_without_optional_fields
                a_deleted_event_is_still_there
                events_are_stored_all_or_none
                many_events_are_stored_at_once
                a_document_has_events_until_all_are_deleted
                totals_that_are_not_there_are_made_as_zero
                totals_are_answered_in_the_order_of_their_keys
                totals_are_replaced_and_read_back
                events_with_a_text_of_a_label_are_counted_up_to_a_limit
                the_events_that_totals_count_are_added_up
                totals_of_many_customers_are_held_and_replaced_at_once
                events_are_added_to_totals
                a_sum_beyond_its_digits_is_not_added
                events_are_put_on_drafts_only
                customers_and_usage_products_that_events_name_are_those_that_are_there
                totals_of_usage_keep_every_part
            }
            webhooks {
                endpoints_come_back_with_every_field_and_go_with_their_secrets
                a_claimed_delivery_is_one_servers_until_its_lease_ends
                a_replay_finds_notifications_with_their_deliveries
                each_field_of_a_filter_narrows_the_deliveries
            }
        }
    };
    (@modules $metas:tt $make:tt $($module:ident { $($name:ident)+ })+) => {
        $($crate::store_contract! { @module $module $metas $make $($name)+ })+
    };
    (@module $module:ident $metas:tt $make:tt $($name:ident)+) => {
        mod $module {
            #[allow(unused_imports, reason = "the store's expression may need nothing")]
            use super::*;
            $($crate::store_contract! { @test $module $name $metas $make })+
        }
    };
    (@test $module:ident $name:ident [$(#[$meta:meta])*] [$make:expr]) => {
        #[test]
        $(#[$meta])*
        fn $name() {
            let store = $make;
            $crate::suite::$module::$name(&store);
        }
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_suites_every_function_is_a_test() {
        let macros = include_str!("mod.rs");
        let files = [
            include_str!("access.rs"),
            include_str!("accounts.rs"),
            include_str!("audit.rs"),
            include_str!("books.rs"),
            include_str!("catalog.rs"),
            include_str!("charges.rs"),
            include_str!("contracts.rs"),
            include_str!("corrections.rs"),
            include_str!("credits.rs"),
            include_str!("document_files.rs"),
            include_str!("documents.rs"),
            include_str!("event_keys.rs"),
            include_str!("filters.rs"),
            include_str!("formats.rs"),
            include_str!("holds.rs"),
            include_str!("imports.rs"),
            include_str!("inspection.rs"),
            include_str!("isolation.rs"),
            include_str!("round_trip.rs"),
            include_str!("ledger.rs"),
            include_str!("limits.rs"),
            include_str!("lists.rs"),
            include_str!("locks.rs"),
            include_str!("notifications.rs"),
            include_str!("numbers.rs"),
            include_str!("paper.rs"),
            include_str!("reading.rs"),
            include_str!("refused.rs"),
            include_str!("replay_log.rs"),
            include_str!("revisions.rs"),
            include_str!("runs.rs"),
            include_str!("sandbox.rs"),
            include_str!("search.rs"),
            include_str!("transactions.rs"),
            include_str!("usage.rs"),
            include_str!("webhooks.rs"),
        ];
        let declared = macros.lines().filter(|line| line.starts_with("pub mod ")).count();
        assert_eq!(declared, files.len());
        let functions = files.iter().flat_map(|file| file.lines()).filter_map(|line| line.strip_prefix("pub fn "));
        let missing: Vec<&str> = functions
            .filter_map(|line| line.split('(').next())
            .filter(|name| !macros.lines().any(|line| line.trim() == *name))
            .collect();
        assert_eq!(missing, [""; 0]);
    }
}
