//! Cancel, resume, quantities, and dry runs.

use billing_application::dry_run::Effects;
use billing_domain::contract::amendment::{CancelAt, QuantityChange};
use billing_testkit::fixtures;
use serde_json::Value;

use super::super::contract_changes::{AmendedContractJson, AmendmentOptions, AmendmentOutcome};
use super::documents::preview;
use super::schemas::assert_fits;
use super::{check, check_field, json, posted_back};

#[test]
fn a_cancelled_contract_ends_with_its_period_today_or_on_a_day() {
    let day = CancelAt::Day(fixtures::date("2026-02-28"));
    let rows = [
        ("{}", CancelAt::PeriodEnd),
        (r#"{"include_current_invoice":false,"last_day":null}"#, CancelAt::PeriodEnd),
        (r#"{"include_current_invoice":true}"#, CancelAt::Today),
        (r#"{"include_current_invoice":true,"last_day":null}"#, CancelAt::Today),
        (r#"{"last_day":"2026-02-28"}"#, day),
        (r#"{"last_day":"2026-02-28","include_current_invoice":false}"#, day),
    ];
    for (body, expected) in rows {
        let (last_day, options) = super::cancel(Some(&json(body))).expect(body);
        assert_eq!((last_day, options.dry_run, options.allow_backdated), (expected, false, false), "{body}");
    }
    assert_eq!(super::cancel(None).expect("no body").0, CancelAt::PeriodEnd);
}

#[test]
fn each_field_of_a_cancel_is_held_against_its_limits() {
    check(
        |body| super::cancel(Some(body)),
        &[
            (r#"{"last_day":"2026-02-28","include_current_invoice":true}"#, &["/include_current_invoice conflicting_fields"]),
            (r#"{"last_day":20260228,"dry_run":"no"}"#, &["/last_day wrong_type", "/dry_run wrong_type"]),
            (r#"{"include_curent_invoice":true}"#, &["/include_curent_invoice unknown_field"]),
            (r#"{"effective_from":"2026-02-28"}"#, &["/effective_from unknown_field"]),
            ("[]", &["/ wrong_type"]),
        ],
    );
}

#[test]
fn a_resume_says_how_it_is_carried_out_or_nothing() {
    let read = |body: Option<&str>| {
        let AmendmentOptions { dry_run, allow_backdated } = super::resume(body.map(json).as_ref()).expect("a resumed contract");
        (dry_run, allow_backdated)
    };
    assert_eq!(read(None), (false, false));
    assert_eq!(read(Some(r#"{"dry_run":true,"allow_backdated":true}"#)), (true, true));
    check(
        |body| super::resume(Some(body)),
        &[(r#"{"dryrun":true}"#, &["/dryrun unknown_field"]), (r#"{"last_day":"2026-02-28"}"#, &["/last_day unknown_field"])],
    );
}

const QUANTITY: &str = r#"{"product_pricing_ref":"api","line_item_id":"seats","quantity":"12.5"}"#;

#[test]
fn a_quantity_holds_from_today_unless_told_otherwise() {
    let today = QuantityChange {
        product_no: None,
        pricing_ref: fixtures::pricing_ref("api"),
        billing_start_date: None,
        line_item_id: fixtures::line_item_id("seats"),
        quantity: fixtures::quantity("12.5"),
        from: None,
        prorate: true,
    };
    assert_eq!(super::quantity_change(&json(QUANTITY)).expect("a quantity").0, today);
    let body = r#"{"product_pricing_ref":"api","billing_start_date":"2026-01-01","line_item_id":"seats","quantity":0,
        "from":"2026-02-15","prorate":false,"dry_run":true,"allow_backdated":true}"#;
    let (change, options) = super::quantity_change(&json(body)).expect(body);
    let expected = QuantityChange {
        billing_start_date: Some(fixtures::date("2026-01-01")),
        quantity: fixtures::quantity("0"),
        from: Some(fixtures::date("2026-02-15")),
        prorate: false,
        ..today
    };
    assert_eq!(change, expected);
    assert!(options.dry_run && options.allow_backdated);
}

#[test]
fn each_field_of_a_quantity_is_held_against_its_limits() {
    check(super::quantity_change, &[("{}", &["/product_pricing_ref required", "/line_item_id required", "/quantity required"])]);
    check_field(
        super::quantity_change,
        QUANTITY,
        &[
            ("product_pricing_ref", r#""a b""#, &["/product_pricing_ref invalid_format"]),
            ("billing_start_date", "1", &["/billing_start_date wrong_type"]),
            ("quantity", "-1", &["/quantity out_of_range"]),
            ("from", r#""tomorrow""#, &["/from invalid_format"]),
            ("prorate", "1", &["/prorate wrong_type"]),
            ("prorated", "true", &["/prorated unknown_field"]),
        ],
    );
}

#[test]
fn a_dry_run_answers_whole_documents() {
    let document = || preview(fixtures::eur());
    let effects = Effects { issued: vec![document(), document()], recomputed: vec![document()], ..Effects::default() };
    let answer = AmendedContractJson::from(&AmendmentOutcome::DryRun(Box::new(effects)));
    assert_fits(&answer);
    let shown = posted_back(&answer);
    let names: Vec<&String> = shown.as_object().expect("an object").keys().collect();
    let fields =
        ["opened", "issued", "recomputed", "voided", "settled", "before", "planned", "changes", "totals", "credits", "dry_run"];
    assert_eq!(names, fields);
    let count = |name: &str| shown[name].as_array().map(Vec::len);
    assert_eq!((count("opened"), count("issued"), count("recomputed"), count("voided")), (Some(0), Some(2), Some(1), Some(0)));
    assert_eq!(shown["dry_run"], Value::Bool(true));
    assert!(shown["issued"][0]["products"][0]["line_items"][0]["amount"].is_number());
}
