//! Where each writing operation is drawn at random: here, or in the histories of the use cases, which perform the same operations
//! as those of the ledger.

use std::collections::{BTreeMap, BTreeSet};

use acceptance::binary;
use serde_json::Value;

use Where::{Both, Http, Nowhere, UseCases};

/// The sources of the use cases' histories, which show the operations that they call.
const USE_CASES: &str = concat!(
    include_str!("../../../crates/billing-application/tests/use_cases/histories/mod.rs"),
    include_str!("../../../crates/billing-application/tests/use_cases/histories/advances.rs"),
    include_str!("../../../crates/billing-application/tests/use_cases/histories/grants.rs"),
    include_str!("../../../crates/billing-application/tests/use_cases/histories/limits.rs"),
    include_str!("../../../crates/billing-application/tests/use_cases/histories/movements.rs"),
);

enum Where {
    /// Only in these histories.
    Http,
    /// Only in the histories of the use cases: they have a model of the operation, and over HTTP it is requested like any other.
    UseCases,
    Both,
    /// Nowhere, with the reason and the test that covers the operation.
    Nowhere(&'static str),
}

const DRAWN: [(&str, Where); 73] = [
    ("log_in", Http),
    ("log_out", Http),
    ("generate_key", Http),
    ("rotate_key", Http),
    ("delete_key", Http),
    ("end_session", Http),
    ("end_other_sessions", Http),
    ("change_password", Http),
    ("confirm_identity", Nowhere(CODES)),
    ("enroll_second_factor", Nowhere(CODES)),
    ("confirm_second_factor", Nowhere(CODES)),
    ("remove_second_factor", Nowhere(CODES)),
    ("invite_administrator", Http),
    ("edit_administrator", Http),
    ("reset_administrator", Http),
    ("record_event", Both),
    ("record_batch", Http),
    ("record_formatted_event", Http),
    ("update_formatted_event", Http),
    ("update_event", Both),
    ("delete_event", Both),
    ("import_usage", Http),
    ("undo_import", Both),
    ("create_usage_product", Both),
    ("edit_usage_product", Http),
    ("create_customer", Both),
    ("edit_customer", Both),
    ("create_entity", UseCases),
    ("edit_entity", Both),
    ("delete_entity", Http),
    ("create_credit_grant", UseCases),
    ("edit_credit_grant", UseCases),
    ("sell_credit", Nowhere(SALES)),
    ("create_limit", UseCases),
    ("edit_limit", UseCases),
    ("delete_limit", UseCases),
    ("create_hold", UseCases),
    ("release_hold", UseCases),
    ("create_pricing", Both),
    ("edit_pricing", UseCases),
    ("rate_new_pricing", Nowhere(RATES)),
    ("create_bank_account", Http),
    ("edit_bank_account", Http),
    ("put_exchange_rate", Http),
    ("create_usage_format", Http),
    ("edit_usage_format", Http),
    ("test_usage_format", Http),
    ("create_contract", Both),
    ("edit_contract", Both),
    ("change_quantity", UseCases),
    ("cancel_contract", Both),
    ("resume_contract", UseCases),
    ("record_charge", UseCases),
    ("edit_charge", UseCases),
    ("delete_charge", UseCases),
    ("dry_run", Http),
    ("run_billing", Both),
    ("advance_clock", UseCases),
    ("issue_document", Both),
    ("void_document", Both),
    ("record_payment", Both),
    ("record_deposit", Both),
    ("reverse_payment", UseCases),
    ("refund", UseCases),
    ("apply", UseCases),
    ("unapply", UseCases),
    ("write_off", UseCases),
    ("create_webhook_endpoint", Nowhere(DELIVERIES)),
    ("edit_webhook_endpoint", Nowhere(DELIVERIES)),
    ("delete_webhook_endpoint", Nowhere(DELIVERIES)),
    ("rotate_webhook_secret", Nowhere(DELIVERIES)),
    ("test_webhook_endpoint", Nowhere(DELIVERIES)),
    ("replay_webhook_deliveries", Nowhere(DELIVERIES)),
];
const SALES: &str = "a sale makes a contract, an invoice, a payment and a grant, which are drawn one by one: `credit::` sells";
const RATES: &str = "a question about prices that are not stored changes nothing: `rating::` compares its answers";
const DELIVERIES: &str = "where notifications are sent changes nothing that is owed: `webhooks::` has receivers for them";
const CODES: &str = "how people log in changes nothing that is owed, and codes go by the time: `team::` has a clock for them";

/// Returns the operations that these histories draw.
pub(crate) fn here() -> BTreeSet<&'static str> {
    DRAWN.iter().filter(|(_, place)| matches!(place, Http | Both)).map(|(operation, _)| *operation).collect()
}

/// Returns the writing operations of the OpenAPI document: all methods but GET.
fn writing() -> BTreeSet<String> {
    let described: Value = serde_json::from_str(&binary::run(&["openapi"], &[]).stdout).expect("an OpenAPI document");
    let mut all = BTreeSet::new();
    for item in described["paths"].as_object().expect("paths").values() {
        let methods = item.as_object().expect("methods").iter().filter(|(method, _)| *method != "get");
        all.extend(methods.map(|(_, operation)| operation["operationId"].as_str().expect("a name").to_owned()));
    }
    all
}

#[test]
fn every_operation_that_writes_is_drawn_or_says_why_not() {
    let drawn: BTreeMap<&str, Where> = DRAWN.into_iter().collect();
    assert_eq!(drawn.keys().map(|operation| (*operation).to_owned()).collect::<BTreeSet<_>>(), writing());
    for (operation, place) in drawn {
        // A use case has the name of its operation. It takes a context first, or the services if it has several transactions.
        let is_called =
            ["cx", "transactions", "services"].iter().any(|first| USE_CASES.contains(&format!(" {operation}({first},")));
        assert_eq!(is_called, matches!(place, UseCases | Both), "whether the use cases' histories call {operation}");
        if let Nowhere(why) = place {
            assert!(why.contains("::` "), "{operation}: {why}");
        }
    }
}
