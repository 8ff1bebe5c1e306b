//! Sections 7 and 8: the default entity, number prefixes, and edits that change due times.

use billing_application::UseCase;
use billing_application::catalog::{
    EntityView, TaxBasisPatch, WantedCustomer, WantedEntity, create_entity, delete_entity, edit_customer, edit_entity,
    get_entity, list_entities,
};
use billing_application::error::{ResourceKind, UseCaseError, UseCaseResult};
use billing_domain::contract::terms::RequestedProduct;
use billing_domain::page::PageRequest;
use billing_domain::party::{EntityProfile, NumberPrefix};
use billing_domain::patch::Changes;
use billing_domain::refs::{ContractRef, EntityRef};
use billing_testkit::fixtures::{self, fixed, per_unit, requested};

use crate::books::{Books, code};
use crate::support::{read, run};

fn create(books: &Books, name: &str, prefix: &str, is_default: Option<bool>) -> UseCaseResult<EntityView> {
    let entity = fixtures::entity(name);
    let number_prefix = NumberPrefix::parse(prefix).expect("a prefix");
    let wanted =
        WantedEntity { profile: EntityProfile { number_prefix, ..entity.profile }, is_default, tax: TaxBasisPatch::default() };
    run(&books.bench.services, &books.bench.principal, UseCase::CreateEntity, |cx| {
        create_entity(cx, Some(entity.entity_ref), wanted)
    })
}

fn edit(
    books: &Books,
    name: &str,
    is_default: Option<bool>,
    change: impl Fn(&mut EntityProfile) + Send + Sync + 'static,
) -> UseCaseResult<EntityView> {
    let edit = Changes::of(move |wanted: &mut WantedEntity| {
        change(&mut wanted.profile);
        wanted.is_default = is_default;
    });
    run(&books.bench.services, &books.bench.principal, UseCase::EditEntity, |cx| {
        edit_entity(cx, &fixtures::entity_ref(name), &edit)
    })
}

fn named(books: &Books, name: &str, prefix: &str) -> UseCaseResult<EntityView> {
    let prefix = NumberPrefix::parse(prefix).expect("a prefix");
    edit(books, name, None, move |profile| profile.number_prefix = prefix.clone())
}

fn is_taken<T>(outcome: UseCaseResult<T>) -> bool {
    matches!(outcome, Err(UseCaseError::AlreadyExists { thing: ResourceKind::Entity, field: "number_prefix" }))
}

/// Returns the default entities. Checks that `list` and `get` return the same.
fn default_of(books: &Books) -> Vec<EntityRef> {
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let listed = read(services, principal, UseCase::ListEntities, |cx| {
        list_entities(cx, &PageRequest::new(100, 0).expect("a page").into())
    })
    .expect("entities")
    .items;
    for view in &listed {
        let found = read(services, principal, UseCase::GetEntity, |cx| get_entity(cx, &view.entity.entity_ref));
        assert_eq!(&found.expect("an entity"), view);
    }
    listed.into_iter().filter(|view| view.is_default).map(|view| view.entity.entity_ref).collect()
}

fn due(books: &Books, contract_ref: ContractRef) -> Option<String> {
    let now = fixtures::at("9000-01-01T00:00:00Z");
    let due = books.bench.read(|tx| tx.contracts_due(None, now, None, 100));
    due.into_iter().find(|due| due.key.contract == contract_ref).map(|due| due.due_at.to_string())
}

#[test]
fn a_prefix_changes_before_its_first_number_and_not_after() {
    let books = Books::at("2026-01-10T12:00:00Z");
    named(&books, "main", "FIRST").expect("an entity without numbers");
    let api = books.pricing("api", vec![per_unit("calls", "0.01")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.calls("2026-01-10T12:00:00Z", "100");

    let refused = named(&books, "main", "SECOND");

    assert_eq!(code(refused), "numbers_given");
    let kept = edit(&books, "main", None, |profile| profile.name = fixtures::line("Renamed")).expect("an unchanged prefix");
    assert_eq!(kept.entity.profile.number_prefix.as_str(), "FIRST");
}

#[test]
fn an_entity_is_deleted_unless_it_is_the_default_or_named() {
    let books = Books::at("2026-01-10T12:00:00Z");
    let delete = |name: &str| {
        run(&books.bench.services, &books.bench.principal, UseCase::DeleteEntity, |cx| {
            delete_entity(cx, &fixtures::entity_ref(name))
        })
    };
    let refused = |name: &str, by: &str| match delete(name) {
        Err(UseCaseError::Conflict { code: "entity_in_use", detail }) => assert!(detail.contains(by), "{detail}"),
        other => panic!("{other:?}"),
    };
    for (name, prefix) in [("second", "SEC"), ("third", "THI")] {
        create(&books, name, prefix, None).expect("an entity");
    }
    refused("main", "the default");
    delete("third").expect("an entity without users");
    assert!(matches!(delete("third"), Err(UseCaseError::Unknown(ResourceKind::Entity))));

    let names = |entity_ref: Option<EntityRef>| {
        let changes = Changes::of(move |wanted: &mut WantedCustomer| wanted.profile.entity_ref.clone_from(&entity_ref));
        run(&books.bench.services, &books.bench.principal, UseCase::EditCustomer, |cx| {
            edit_customer(cx, &fixtures::customer_ref("acme"), &changes)
        })
        .expect("a customer");
    };
    names(Some(fixtures::entity_ref("second")));
    refused("second", "customer acme names");
    names(None);
    let api = books.pricing("api", vec![fixed("fee", "10.00")]);
    let entity_ref = Some(fixtures::entity_ref("second"));
    books.contract(vec![RequestedProduct { entity_ref, ..requested(&api, "2026-01-01", "2026-12-31") }]);
    refused("second", "contract C-1 names");
}

#[test]
fn a_prefix_that_is_anothers_is_taken() {
    let books = Books::at("2026-01-10T12:00:00Z");
    create(&books, "second", "SEC", None).expect("an entity");
    assert!(is_taken(create(&books, "third", "SEC", None)));
    assert!(is_taken(named(&books, "second", "UB")));
    // A prefix that was replaced before its first number is available again.
    named(&books, "second", "OTHER").expect("an entity without numbers");
    create(&books, "third", "SEC", None).expect("an entity");
}

#[test]
fn one_entity_is_the_default_and_an_edit_or_a_new_one_moves_that() {
    let books = Books::at("2026-01-10T12:00:00Z");
    let [main, second, third] = ["main", "second", "third"].map(fixtures::entity_ref);
    assert_eq!(default_of(&books), [main], "the first entity");
    assert!(!create(&books, "second", "SEC", None).expect("an entity").is_default);
    assert!(create(&books, "third", "THIRD", Some(true)).expect("an entity").is_default);
    assert_eq!(default_of(&books), [third]);
    assert!(edit(&books, "second", Some(true), |_| {}).expect("an edit").is_default);
    assert_eq!(default_of(&books), std::slice::from_ref(&second));
    assert!(!edit(&books, "main", Some(false), |_| {}).expect("no change").is_default);
    assert!(edit(&books, "second", None, |_| {}).expect("no change").is_default);

    let refused = edit(&books, "second", Some(false), |_| {});

    let Err(UseCaseError::Invalid(violations)) = refused else { panic!("{refused:?}") };
    assert!(violations.to_string().contains("set `default` on another entity instead"), "{violations}");
    assert_eq!(default_of(&books), [second]);
}

#[test]
fn an_edit_of_zone_or_grace_lets_the_billing_run_look_again() {
    let books = Books::at("2026-01-10T12:00:00Z");
    create(&books, "second", "SEC", None).expect("an entity");
    let plan = books.pricing("plan", vec![fixed("fee", "10.00")]);
    let by_main = books.contract(vec![requested(&plan, "2026-01-01", "2026-12-31")]);
    let mut of_second = requested(&plan, "2026-01-01", "2026-12-31");
    of_second.entity_ref = Some(fixtures::entity_ref("second"));
    let by_second = books.contract(vec![of_second]);
    let put_off = Some("2026-02-01T02:00:00Z".to_owned());
    let seen = |books: &Books| (due(books, by_main), due(books, by_second));
    assert_eq!(seen(&books), (put_off.clone(), put_off.clone()));

    edit(&books, "main", None, |profile| profile.name = fixtures::line("Renamed")).expect("an edit");
    assert_eq!(seen(&books), (put_off.clone(), put_off.clone()), "the name does not affect due times");

    edit(&books, "main", None, |profile| profile.grace_hours = 0).expect("an edit");
    let now = Some("2026-01-10T12:00:00Z".to_owned());
    assert_eq!(seen(&books), (now.clone(), put_off));

    edit(&books, "second", None, |profile| profile.time_zone = fixtures::zone("Pacific/Kiritimati")).expect("an edit");
    assert_eq!(seen(&books), (now.clone(), now));
}
