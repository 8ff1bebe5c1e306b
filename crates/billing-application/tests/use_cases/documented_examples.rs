//! Runs every example of docs/billing-rules.md through the use cases. The results must match the blocks and the bold
//! amounts of the page.

mod amendments;
mod changes;
mod charges;
mod corrections;
mod families;
mod landing;
mod metering;
mod money;
mod page;
mod periods;
mod prices;
mod seats;
mod timing;

use page::Page;

macro_rules! examples {
    ($($module:ident::$name:ident;)+) => {
        /// The test names of all examples.
        const TESTED: &[&str] = &[$(stringify!($name)),+];

        $(#[test]
        fn $name() {
            let mut page = Page::of(&number_of(stringify!($name)));
            $module::$name(&mut page);
            page.close();
        })+
    };
}

examples! {
    periods::example_1_1_without_an_issue_day_the_first_period_is_the_short_one;
    periods::example_1_2_with_an_issue_day_the_last_period_is_the_short_one;
    periods::example_1_3_a_month_that_is_too_short_ends_a_period_on_its_last_day;
    periods::example_1_4_a_leap_day_makes_a_year_one_day_longer;
    periods::example_1_5_the_first_invoice_waits_for_the_issue_day;
    periods::example_1_6_more_than_24_documents_at_once_are_asked_for;

    timing::example_2_1_after_use_everything_is_on_one_invoice;
    timing::example_2_2_during_use_usage_is_on_the_next_invoice;
    timing::example_2_3_before_use_usage_is_on_a_debit;
    timing::example_2_4_products_that_agree_share_an_invoice;
    timing::example_2_5_midnight_and_grace_are_the_entitys;
    timing::example_2_6_an_empty_draft_is_void_and_a_total_of_zero_is_issued;
    timing::example_2_7_payments_make_the_state;
    timing::example_2_8_one_time_is_one_period;
    timing::example_2_9_an_issue_date_is_never_set_back;
    timing::example_2_10_usage_is_billed_at_the_rates_of_its_own_period;
    timing::example_2_11_a_product_that_is_added_joins_the_draft;

    timing::example_3_1_each_event_is_an_invoice;
    timing::example_3_2_an_event_that_lowers_the_price_is_a_credit;
    timing::example_3_3_an_event_that_changes_nothing_has_no_document_of_its_own;
    timing::example_3_4_before_use_children_leave_the_debit_nothing;

    landing::example_4_1_the_contract_that_began_last_takes_the_event;
    landing::example_4_2_validations_choose_and_refuse;
    landing::example_4_3_the_service_date_decides;
    landing::example_4_4_one_event_can_make_two_lines;
    metering::example_4_5_prices_by_model;
    metering::example_4_6_two_subscriptions_of_one_pricing;

    corrections::example_5_1_late_usage_is_a_debit;
    corrections::example_5_2_less_usage_is_a_credit;
    corrections::example_5_3_a_new_timestamp_moves_an_event_to_another_period;
    corrections::example_5_4_late_usage_eats_the_minimum_fee_first;
    corrections::example_5_5_a_credit_that_came_to_be_a_debit;
    corrections::example_5_6_a_void_invoice_is_billed_again;
    corrections::example_5_7_a_deleted_event_keeps_its_history;
    corrections::example_5_8_late_usage_is_priced_by_the_tier_it_reaches;
    families::example_5_9_tax_is_rounded_over_a_family;
    families::example_5_10_a_correction_has_the_rest_of_discount_and_tax;
    families::example_5_11_a_family_keeps_its_default_tax;
    families::example_5_12_everything_stands_at_the_rates_in_force;
    families::example_5_13_an_invoice_is_never_below_zero;
    charges::example_5_14_a_setup_fee_is_on_its_periods_invoice;
    charges::example_5_15_a_setup_fee_of_a_period_that_is_issued_is_a_debit;
    charges::example_5_16_goodwill_is_a_credit_and_what_follows_collects_with_it;
    charges::example_5_17_a_credit_note_takes_no_more_than_was_billed;

    prices::example_6_1_the_price_models;
    prices::example_6_2_the_aggregations;
    prices::example_6_3_included_minimum_and_maximum;
    prices::example_6_4_a_line_is_rounded_once;
    prices::example_6_5_from_lines_to_the_total;
    prices::example_6_6_tax_is_rounded_once_per_rate;
    prices::example_6_7_an_item_that_is_charged_once;
    prices::example_6_8_before_use_the_minimum_fee_is_on_the_debit;
    seats::example_6_9_seats_are_billed_by_the_days_they_were_agreed;
    seats::example_6_10_another_number_of_seats_in_a_month_that_is_issued;
    metering::example_6_11_distinct_users;

    changes::example_7_1_an_edit_starts_with_the_next_invoice;
    changes::example_7_2_an_edit_of_the_current_invoice_changes_the_draft;
    changes::example_7_3_an_edit_of_an_issued_invoice_is_a_debit;
    changes::example_7_4_a_new_tax_rate_is_a_credit_and_a_debit;
    changes::example_7_5_an_edit_lists_all_products;
    changes::example_7_6_an_edit_may_not_leave_usage_without_a_line;
    changes::example_7_7_a_cancelled_contract_runs_to_the_end_of_its_period;
    changes::example_7_8_a_contract_cancelled_today_is_billed_today;
    changes::example_7_9_days_paid_in_advance_are_given_back;
    changes::example_7_10_a_preview_is_what_is_issued;
    changes::example_7_11_defaults_come_from_customer_and_entity;
    changes::example_7_12_states_follow_from_the_dates;
    amendments::example_7_13_a_wrong_fee_is_put_right_from_the_past;
    amendments::example_7_14_a_dry_run_shows_what_an_edit_would_do;
    amendments::example_7_15_what_is_planned_stays_planned;
    amendments::example_7_16_an_edit_that_changes_nothing_makes_no_version;
    amendments::example_7_17_a_product_that_is_put_back_goes_on;
    amendments::example_7_18_a_product_that_has_ended_goes_on_later;
    amendments::example_7_19_a_cancel_with_a_last_day_and_taken_back;
    amendments::example_7_20_a_contract_that_should_never_have_been;
    amendments::example_7_21_a_preview_of_before_use_shows_the_debit;
    amendments::example_7_22_what_an_edit_cant_do;
    metering::example_7_23_a_price_of_its_own_for_a_model;

    landing::example_8_1_numbers_have_no_gaps;
    landing::example_8_2_a_prefix_changes_before_its_first_number;

    money::example_9_1_a_credit_settles_the_debit_it_takes_back;
    money::example_9_2_what_is_given_back_pays_what_comes_next;
    money::example_9_3_a_payment_that_bounces_is_owed_again;
    money::example_9_4_what_was_given_up_on_is_paid_in_part;
    money::example_9_5_a_deposit_pays_what_is_due_and_the_next_invoice;
}

/// Returns `1.2` for `example_1_2_…`.
fn number_of(name: &str) -> String {
    let mut parts = name.split('_').skip(1);
    let (section, example) = (parts.next().expect("a section"), parts.next().expect("an example"));
    format!("{section}.{example}")
}

#[test]
fn every_example_of_the_page_has_a_test_and_every_test_an_example() {
    let tested: Vec<String> = TESTED.iter().map(|name| number_of(name)).collect();
    assert_eq!(page::numbers(), tested);
}

#[test]
fn every_section_has_an_example() {
    for section in 1..=9 {
        let prefix = format!("{section}.");
        assert!(page::numbers().iter().any(|number| number.starts_with(&prefix)), "section {section}");
    }
}
