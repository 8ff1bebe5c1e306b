//! Billing runs.

use billing_application::billing_run::{BilledDocument, BillingReport, FailedContract};
use billing_application::error::UseCaseError;
use billing_application::names::ObjectNames;
use billing_domain::document::DocumentKind;
use billing_domain::money::{AmountOutOfRange, Money};
use billing_domain::ports::{IdSource, StoreError};
use billing_domain::refs::{DocumentRef, OrganizationId};
use billing_domain::refusal::Refusal;
use billing_domain::runs::FailedDocument;
use billing_testkit::{CountingIds, fixtures};
use insta::assert_snapshot;

use super::super::billing::BillingReportJson;
use super::documents::january;
use super::{check, json, presented};

#[test]
fn a_billing_run_is_real_unless_told_otherwise() {
    for (body, dry_run) in [("{}", false), (r#"{"dry_run":null}"#, false), (r#"{"dry_run":true}"#, true)] {
        assert_eq!(super::billing_run(Some(&json(body))), Ok(dry_run), "{body}");
    }
    assert_eq!(super::billing_run(None), Ok(false));
    let rows: &[(&str, &[&str])] = &[(r#"{"dry_run":"yes"}"#, &["/dry_run wrong_type"]), ("true", &["/ wrong_type"])];
    check(|body| super::billing_run(Some(body)), rows);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one JSON object")]
fn a_billing_report_names_what_was_issued_and_what_failed_without_internals() {
    let ids = CountingIds::new();
    let (contract, _) = january(fixtures::eur());
    let number =
        fixtures::document_head(&ids, &contract, &fixtures::entity("main"), fixtures::period("2026-01-01", "2026-01-31")).number;
    let opened = Some((DocumentRef::from_uuid(ids.new_id()), number));
    let (organization, contract_ref) = (OrganizationId::from_uuid(ids.new_id()), contract.contract_ref);
    let key = contract.key(organization);
    let failed = |problem| FailedContract::whole(key, problem);
    let unissued = FailedDocument { period: fixtures::period("2026-01-01", "2026-01-31"), document_ref: None };
    let lacking = Refusal::conflict("paper_incomplete", "the paper lacks a field");
    let report = BillingReport {
        run_ref: None,
        issued: vec![BilledDocument {
            organization,
            contract_ref,
            opened,
            kind: DocumentKind::Invoice,
            period: fixtures::period("2026-01-01", "2026-01-31"),
            is_period_open: true,
            total: fixtures::cents(3080),
        }],
        voided: vec![BilledDocument {
            organization,
            contract_ref,
            opened: None,
            kind: DocumentKind::Debit,
            period: fixtures::period("2026-01-01", "2026-01-31"),
            is_period_open: true,
            total: Money::zero(fixtures::currency("JPY")),
        }],
        failed: vec![
            failed(UseCaseError::AmountOutOfRange(AmountOutOfRange)),
            FailedContract::of_document(key, unissued, lacking),
            failed(UseCaseError::Store(StoreError::Corrupt("row 17 of node 10.0.0.7".to_owned()))),
        ],
        dry_run: true,
        next: None,
        names: ObjectNames::default(),
    };
    let shown = presented(&BillingReportJson::from(&report));
    assert!(!shown.contains("10.0.0.7"), "{shown}");
    assert_snapshot!(shown, @r#"
    {
      "run_ref": null,
      "issued": [
        {
          "document_ref": "019b76da-a802-7000-8000-000000000002",
          "document_number": "MAIN-INV-1",
          "kind": "INVOICE",
          "period_start": "2026-01-01",
          "period_end": "2026-01-31",
          "contract_ref": "019b76da-a802-7000-8000-000000000002",
          "contract_number": null,
          "customer_ref": null,
          "customer_name": null,
          "currency": "EUR",
          "total": 30.80
        }
      ],
      "voided": [
        {
          "document_ref": null,
          "document_number": null,
          "kind": "DEBIT",
          "period_start": "2026-01-01",
          "period_end": "2026-01-31",
          "contract_ref": "019b76da-a802-7000-8000-000000000002",
          "contract_number": null,
          "customer_ref": null,
          "customer_name": null,
          "currency": "JPY",
          "total": 0
        }
      ],
      "failed": [
        {
          "contract_ref": "019b76da-a802-7000-8000-000000000002",
          "contract_number": null,
          "customer_ref": null,
          "customer_name": null,
          "period_start": null,
          "period_end": null,
          "document_ref": null,
          "document_number": null,
          "problem": {
            "code": "amount_out_of_range",
            "detail": "an amount would exceed 10^15 minor units, or the usage of a period 10^19: use a smaller quantity or price"
          }
        },
        {
          "contract_ref": "019b76da-a802-7000-8000-000000000002",
          "contract_number": null,
          "customer_ref": null,
          "customer_name": null,
          "period_start": "2026-01-01",
          "period_end": "2026-01-31",
          "document_ref": null,
          "document_number": null,
          "problem": {
            "code": "paper_incomplete",
            "detail": "the paper lacks a field"
          }
        },
        {
          "contract_ref": "019b76da-a802-7000-8000-000000000002",
          "contract_number": null,
          "customer_ref": null,
          "customer_name": null,
          "period_start": null,
          "period_end": null,
          "document_ref": null,
          "document_number": null,
          "problem": {
            "code": "internal_error",
            "detail": "the service failed: give the request id to its operators"
          }
        }
      ],
      "dry_run": true,
      "next": null,
      "warnings": [
        {
          "code": "period_not_over",
          "detail": "1 document corrects an invoice whose period is not over, and later usage of the period is on further debits or credits: for one invoice, issue it after its period"
        }
      ]
    }
    "#);
}
