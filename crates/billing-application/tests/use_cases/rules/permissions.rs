//! Each use case requires its permission.

use std::time::Duration;

use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::idempotency::IdempotentRequest;
use billing_application::{Request, Services, UseCase, carry_out, carry_out_in_parts, own_account, read, run};
use billing_domain::access::{Administrator, ApiKey, Permission, Principal, Role, Scope, Scopes};
use billing_domain::idempotency::{BodyHash, IdempotencyKey, ScopedIdempotencyKey, StoredResponse};
use billing_testkit::fixtures;

use crate::support::Bench;

/// A call that returns the answer of each way to request a use case.
type UseCaseCall = Box<dyn Fn(&Services, &Principal) -> Vec<UseCaseResult<()>>>;

/// Requests a use case in every way. Its work must not start.
fn asked(use_case: UseCase) -> UseCaseCall {
    Box::new(move |services, principal| {
        let mut answers = vec![
            run::<()>(services, principal, use_case, |_| panic!("unexpected call")),
            read::<()>(services, principal, use_case, |_| panic!("unexpected call")),
        ];
        let keyed = keyed(use_case);
        for key in [None, Some(&keyed)] {
            let request = Request { principal, use_case, key };
            answers.push(carry_out::<()>(services, request, no_response, |_| panic!("unexpected call")).map(drop));
            answers.push(carry_out_in_parts::<()>(services, request, no_response, |_| panic!("unexpected call")).map(drop));
        }
        answers
    })
}

fn no_response(_: &()) -> StoredResponse {
    panic!("unexpected call")
}

/// Calls a use case that opens its transactions itself.
fn called<T>(call: impl Fn(&Services, &Principal) -> UseCaseResult<T> + 'static) -> UseCaseCall {
    Box::new(move |services, principal| vec![call(services, principal).map(drop)])
}

fn keyed(use_case: UseCase) -> IdempotentRequest {
    let key = ScopedIdempotencyKey { path: "/things".to_owned(), key: IdempotencyKey::parse("k").expect("a key") };
    IdempotentRequest { use_case, key, body: BodyHash([1; 32]), wait: Duration::ZERO, sealed_for: None }
}

#[expect(clippy::too_many_lines, reason = "one table or story")]
fn by_need() -> Vec<(Permission, Vec<UseCaseCall>)> {
    vec![
        (
            Permission::Administrator,
            vec![
                asked(UseCase::GetOwnSession),
                called(|s, p| own_account::change_password(s, p, "session", "password", "another password")),
                called(own_account::enroll_second_factor),
                called(|s, p| own_account::confirm_second_factor(s, p, "123456")),
                called(|s, p| own_account::remove_second_factor(s, p, "password", "123456")),
                asked(UseCase::ListSessions),
                asked(UseCase::EndSessions),
            ],
        ),
        (
            Permission::Owner,
            vec![
                asked(UseCase::GenerateKey),
                asked(UseCase::ListKeys),
                asked(UseCase::RotateKey),
                asked(UseCase::DeleteKey),
                asked(UseCase::ListAdministrators),
                asked(UseCase::EditAdministrator),
            ],
        ),
        (
            Permission::Scope(Scope::UsageWrite),
            vec![
                asked(UseCase::RecordUsage),
                asked(UseCase::UpdateEvent),
                asked(UseCase::DeleteEvent),
                asked(UseCase::UndoImport),
            ],
        ),
        (
            Permission::Scope(Scope::CatalogWrite),
            vec![
                asked(UseCase::CreateUsageProduct),
                asked(UseCase::CreatePricing),
                asked(UseCase::EditEntity),
                asked(UseCase::DeleteEntity),
                asked(UseCase::EditFormat),
            ],
        ),
        (
            Permission::ScopeAndRead(Scope::CatalogWrite),
            vec![
                asked(UseCase::CreateWebhookEndpoint),
                asked(UseCase::EditWebhookEndpoint),
                asked(UseCase::DeleteWebhookEndpoint),
                asked(UseCase::RotateWebhookSecret),
                asked(UseCase::TestWebhookEndpoint),
                asked(UseCase::ReplayWebhookDeliveries),
            ],
        ),
        (
            Permission::ScopeOrRole(Scope::CatalogWrite, Role::Finance),
            vec![asked(UseCase::CreateCustomer), asked(UseCase::EditCustomer)],
        ),
        (Permission::Scope(Scope::ContractsWrite), vec![asked(UseCase::CancelContract), asked(UseCase::ResumeContract)]),
        (
            Permission::Scope(Scope::DocumentsWrite),
            vec![
                asked(UseCase::IssueDocument),
                asked(UseCase::VoidDocument),
                asked(UseCase::RunBilling),
                asked(UseCase::EditCharge),
                asked(UseCase::DeleteCharge),
            ],
        ),
        (
            Permission::Scope(Scope::Read),
            vec![
                asked(UseCase::GetEvent),
                asked(UseCase::GetEventHistory),
                asked(UseCase::ListEvents),
                asked(UseCase::ListRefusedUsage),
                asked(UseCase::ListImports),
                asked(UseCase::GetImport),
                asked(UseCase::ListBillingRuns),
                asked(UseCase::GetBillingRun),
                asked(UseCase::GetVerification),
                asked(UseCase::ListCustomers),
                asked(UseCase::ListEntities),
                asked(UseCase::ListUsageProducts),
                asked(UseCase::ListPricings),
                asked(UseCase::ListFormats),
                asked(UseCase::ListAuditEntries),
                asked(UseCase::GetContract),
                asked(UseCase::ListContracts),
                asked(UseCase::Search),
                asked(UseCase::PreviewInvoices),
                asked(UseCase::GetCharge),
                asked(UseCase::ListCharges),
                asked(UseCase::GetDocument),
                asked(UseCase::ListDocuments),
            ],
        ),
    ]
}

#[test]
fn a_key_with_every_scope_but_the_one_that_is_needed_gets_nowhere() {
    let bench = Bench::at("2026-01-20T12:00:00Z");
    let key = fixtures::api_key(&*bench.ids, bench.principal.organization());
    let before = bench.store.contents();
    // The refusal does not depend on the database.
    bench.store.set_unavailable(true);
    for (need, questions) in by_need() {
        // No scope is enough for what only administrators may do.
        let missing = if need.scopes().is_empty() { vec![None] } else { need.scopes().into_iter().map(Some).collect() };
        for missing in missing {
            let others: Vec<Scope> = Scope::ALL.into_iter().filter(|scope| Some(*scope) != missing).collect();
            let principal = Principal::of_key(&ApiKey { scopes: Scopes::of(&others), ..key.clone() });
            for (index, ask) in questions.iter().enumerate() {
                for refused in ask(&bench.services, &principal) {
                    let is_told = matches!(&refused, Err(UseCaseError::Forbidden(needed)) if *needed == need);
                    assert!(is_told, "{need} without {missing:?} {index}: {refused:?}");
                }
            }
        }
    }
    assert_eq!(bench.store.contents(), before);
}

#[test]
fn an_administrator_without_the_role_that_is_needed_gets_nowhere_and_is_told_which_it_is() {
    let bench = Bench::at("2026-01-20T12:00:00Z");
    let administrator = fixtures::administrator(&*bench.ids, bench.principal.organization());
    let before = bench.store.contents();
    // The refusal does not depend on the database.
    bench.store.set_unavailable(true);
    let mut refused = 0;
    for (need, questions) in by_need() {
        for role in Role::ALL.into_iter().filter(|role| *role < need.role()) {
            let principal = Principal::of_administrator(&Administrator { role, ..administrator.clone() });
            for (index, ask) in questions.iter().enumerate() {
                for answer in ask(&bench.services, &principal) {
                    let is_told = matches!(&answer, Err(UseCaseError::InsufficientRole { needed, role: theirs })
                        if (*needed, *theirs) == (need.role(), role));
                    assert!(is_told, "{need} {index} {role}: {answer:?}");
                }
                refused += 1;
            }
        }
    }
    assert!(refused > 30, "{refused}");
    assert_eq!(bench.store.contents(), before);
}

#[test]
fn what_is_about_oneself_is_nothing_for_the_command_line() {
    let bench = Bench::at("2026-01-20T12:00:00Z");
    let refused = read(&bench.services, &bench.principal, UseCase::ListSessions, |cx| own_account::list_sessions(cx, "session"));
    assert!(matches!(refused, Err(UseCaseError::Forbidden(Permission::Administrator))), "{refused:?}");
}
