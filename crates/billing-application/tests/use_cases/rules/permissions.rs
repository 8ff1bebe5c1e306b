//! Each use case requires its permission, also when another use case calls it.

use std::time::Duration;

use billing_application::audit::{self, AuditQuery};
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::idempotency::{IdempotentRequest, execute_once};
use billing_application::usage::{self, Atomicity, EventQuery, EventUpdate, NO_ANSWER};
use billing_application::{
    Services, UseCase, administrators, billing_run, catalog, charges, contracts, documents, formats, keys, own_account,
    run_history, search, verify,
};
use billing_domain::access::{Administrator, ApiKey, Permission, Principal, Role, Scope, Scopes};
use billing_domain::charge::ChargeEdit;
use billing_domain::contract::amendment::CancelAt;
use billing_domain::idempotency::{BodyHash, IdempotencyKey, ScopedIdempotencyKey};
use billing_domain::page::PageRequest;
use billing_domain::patch::Changes;
use billing_domain::ports::{
    AuditFilter, AuditPart, CustomerFilter, CustomerSortKey, EventSortKey, ImportFilter, RefusedFilter, RunFilter,
};
use billing_domain::refs::{
    AdminRef, ApiKeyRef, BillingRunRef, ChargeRef, ContractRef, DocumentRef, EventRef, ImportRef, SessionRef,
};
use billing_testkit::fixtures;
use uuid::Uuid;

use crate::support::Bench;

const ID: Uuid = Uuid::from_u128(7);

type UseCaseCall = Box<dyn Fn(&Services<'_>, &Principal) -> UseCaseResult<()>>;

fn asked<T>(ask: impl Fn(&Services<'_>, &Principal) -> UseCaseResult<T> + 'static) -> UseCaseCall {
    Box::new(move |services, principal| ask(services, principal).map(drop))
}

fn keyed(use_case: UseCase) -> IdempotentRequest {
    let key = ScopedIdempotencyKey { path: "/things".to_owned(), key: IdempotencyKey::parse("k").expect("a key") };
    IdempotentRequest { use_case, key, body: BodyHash([1; 32]), wait: Duration::ZERO, sealed_for: None }
}

fn by_need() -> Vec<(Permission, Vec<UseCaseCall>)> {
    let (contract, document, event) = (ContractRef::from_uuid(ID), DocumentRef::from_uuid(ID), EventRef::from_uuid(ID));
    let page = PageRequest::new(10, 0).expect("a page");
    let options = contracts::AmendmentOptions::default();
    let charge = || ChargeRef::parse("setup").expect("a reference");
    let usage_product = fixtures::usage_product("calls");
    let pricing = fixtures::pricing("plan", Vec::new());
    vec![
        (
            Permission::Administrator,
            vec![
                asked(|s, p| own_account::own_account(s, p, "session")),
                asked(|s, p| own_account::change_password(s, p, "session", "password", "another password")),
                asked(own_account::enroll_second_factor),
                asked(|s, p| own_account::confirm_second_factor(s, p, "123456")),
                asked(|s, p| own_account::remove_second_factor(s, p, "password", "123456")),
                asked(|s, p| own_account::list_sessions(s, p, "session")),
                asked(|s, p| own_account::end_session(s, p, SessionRef::from_uuid(ID))),
                asked(|s, p| own_account::end_other_sessions(s, p, "session")),
            ],
        ),
        (
            Permission::Owner,
            vec![
                asked(|s, p| keys::generate_key(s, p, keys::KeyRequest { name: None, scopes: Scopes::all(), expires_at: None })),
                asked(move |s, p| keys::list_keys(s, p, page)),
                asked(|s, p| {
                    let rotation = keys::Rotation { overlap_hours: 1, expires_at: None };
                    keys::rotate_key(s, p, ApiKeyRef::from_uuid(ID), rotation)
                }),
                asked(|s, p| keys::delete_key(s, p, ApiKeyRef::from_uuid(ID))),
                asked(move |s, p| administrators::administrators_of(s, p, page)),
                asked(|s, p| {
                    let edit = administrators::AdministratorEdit { role: Some(Role::Read), disabled: Some(true) };
                    administrators::edit_administrator(s, p, AdminRef::from_uuid(ID), edit)
                }),
                asked(|s, p| execute_once(s, p, &keyed(UseCase::GenerateKey), |()| panic!("unexpected call"), |_, _| Ok(()))),
            ],
        ),
        (
            Permission::Scope(Scope::UsageWrite),
            vec![
                asked(|s, p| usage::record_usage(s, p, &[], Atomicity::PerEvent, &NO_ANSWER)),
                asked(move |s, p| usage::update_event(s, p, event, &EventUpdate::default())),
                asked(move |s, p| usage::delete_event(s, p, event)),
                asked(|s, p| usage::undo_import(s, p, ImportRef::from_uuid(ID), &|| true, &mut |step| step.carry_out(s))),
                asked(|s, p| usage::map_events(s, p, &formats::NamedFormat::Name(fixtures::line("Log")), &[])),
            ],
        ),
        (
            Permission::Scope(Scope::CatalogWrite),
            vec![
                asked(move |s, p| catalog::create_usage_product(s, p, None, usage_product.profile.clone())),
                asked(move |s, p| catalog::create_pricing(s, p, None, pricing.content.clone())),
                asked(|s, p| catalog::edit_customer(s, p, &fixtures::customer_ref("acme"), &Changes::none())),
                asked(|s, p| catalog::edit_entity(s, p, &fixtures::entity_ref("main"), &Changes::none())),
                asked(|s, p| formats::edit_format(s, p, &fixtures::format_ref("log"), &Changes::none())),
            ],
        ),
        (
            Permission::Scope(Scope::ContractsWrite),
            vec![
                asked(move |s, p| contracts::cancel_contract(s, p, contract, CancelAt::Today, options)),
                asked(move |s, p| contracts::resume_contract(s, p, contract, options)),
            ],
        ),
        (
            Permission::Scope(Scope::DocumentsWrite),
            vec![
                asked(move |s, p| documents::issue_document(s, p, document)),
                asked(move |s, p| documents::void_document(s, p, document)),
                asked(|s, p| billing_run::run_billing(s, p, billing_run::BillingRunRequest::whole(true))),
                asked(move |s, p| charges::edit_charge(s, p, &charge(), &ChargeEdit::default(), false)),
                asked(move |s, p| charges::delete_charge(s, p, &charge())),
            ],
        ),
        (
            Permission::Scope(Scope::Read),
            vec![
                asked(move |s, p| usage::get_event(s, p, event)),
                asked(move |s, p| usage::event_history(s, p, event)),
                asked(move |s, p| usage::list_events(s, p, &EventQuery::default(), EventSortKey::default(), page)),
                asked(move |s, p| usage::list_refused_usage(s, p, &RefusedFilter::default(), page)),
                asked(move |s, p| usage::list_imports(s, p, &ImportFilter::default(), page)),
                asked(|s, p| usage::get_import(s, p, ImportRef::from_uuid(ID))),
                asked(move |s, p| run_history::list_billing_runs(s, p, &RunFilter::default(), page)),
                asked(|s, p| run_history::get_billing_run(s, p, BillingRunRef::from_uuid(ID))),
                asked(verify::last_verification),
                asked(move |s, p| catalog::list_customers(s, p, &CustomerFilter::default(), CustomerSortKey::Created, page)),
                asked(move |s, p| catalog::list_entities(s, p, page)),
                asked(move |s, p| catalog::list_usage_products(s, p, page)),
                asked(move |s, p| catalog::list_pricings(s, p, page)),
                asked(move |s, p| formats::list_formats(s, p, page)),
                asked(move |s, p| {
                    let part = AuditPart { after: None, skip: 0, limit: 10 };
                    audit::list_audit_entries(s, p, &AuditFilter::default(), AuditQuery { part, with_total: true })
                }),
                asked(move |s, p| contracts::get_contract(s, p, contract)),
                asked(move |s, p| contracts::search_contracts(s, p, &contracts::ContractQuery::default(), page)),
                asked(|s, p| search::search(s, p, &fixtures::line("x"))),
                asked(move |s, p| contracts::current_invoices(s, p, contract)),
                asked(move |s, p| contracts::next_invoices(s, p, contract)),
                asked(move |s, p| charges::get_charge(s, p, &charge())),
                asked(move |s, p| charges::list_charges(s, p, &charges::ChargeQuery::default(), page)),
                asked(move |s, p| documents::get_document(s, p, document)),
                asked(move |s, p| documents::list_documents(s, p, &documents::DocumentQuery::default(), page.into())),
            ],
        ),
    ]
}

#[test]
fn a_key_with_every_scope_but_the_one_that_is_needed_gets_nowhere() {
    let bench = Bench::at("2026-01-20T12:00:00Z");
    let key = fixtures::api_key(&*bench.ids, bench.principal.organization());
    let before = bench.store.contents();
    for (need, questions) in by_need() {
        let others: Vec<Scope> = Scope::ALL.into_iter().filter(|scope| Permission::Scope(*scope) != need).collect();
        let principal = Principal::of_key(&ApiKey { scopes: Scopes::of(&others), ..key.clone() });
        for (index, ask) in questions.iter().enumerate() {
            let refused = ask(&bench.services, &principal);
            assert!(matches!(&refused, Err(UseCaseError::Forbidden(needed)) if *needed == need), "{need} {index}: {refused:?}");
        }
    }
    assert_eq!(bench.store.contents(), before);
}

#[test]
fn an_administrator_without_the_role_that_is_needed_gets_nowhere_and_is_told_which_it_is() {
    let bench = Bench::at("2026-01-20T12:00:00Z");
    let administrator = fixtures::administrator(&*bench.ids, bench.principal.organization());
    let before = bench.store.contents();
    let mut refused = 0;
    for (need, questions) in by_need() {
        for role in Role::ALL.into_iter().filter(|role| *role < need.role()) {
            let principal = Principal::of_administrator(&Administrator { role, ..administrator.clone() });
            for (index, ask) in questions.iter().enumerate() {
                let answer = ask(&bench.services, &principal);
                let is_told = matches!(&answer, Err(UseCaseError::InsufficientRole { needed, role: theirs })
                    if (*needed, *theirs) == (need.role(), role));
                assert!(is_told, "{need} {index} {role}: {answer:?}");
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
    let refused = own_account::list_sessions(&bench.services, &bench.principal, "session");
    assert!(matches!(refused, Err(UseCaseError::Forbidden(Permission::Administrator))), "{refused:?}");
}
