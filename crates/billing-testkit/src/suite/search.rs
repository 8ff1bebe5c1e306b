//! The search by numbers, references, names and words.

use billing_domain::charge::Charge;
use billing_domain::contract::Contract;
use billing_domain::document::IssuedDocument;
use billing_domain::document::numbering::NumberEnd;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::ledger::receivables::AccountEntry;
use billing_domain::metadata::Metadata;
use billing_domain::ports::{SearchHitKind, SearchTerms, Store};
use billing_domain::receivables::{AccountKey, Payment, PaymentKind};
use billing_domain::refs::PaymentRef;
use billing_domain::usage::{AnswerForm, EventKeyRecord, FactsDigest, NewEventKeyRecord};

use super::lists::{issue, made};
use super::{World, done, keep_events, later, read, updated, world, write};
use crate::FreshIds;
use crate::fixtures::{self, cents, date};

fn sought(text: &str) -> SearchTerms {
    SearchTerms {
        text: fixtures::line(text),
        document_number: None,
        number_end: None,
        contract_number: None,
        id: None,
        with_api_keys: true,
    }
}

fn found(store: &dyn Store, w: &World, sought: &SearchTerms) -> Vec<(SearchHitKind, String)> {
    let found = read(store, |tx| tx.search(w.org, sought, 20));
    found.into_iter().map(|found| (found.kind, found.number.or(found.name).unwrap_or(found.reference))).collect()
}

#[expect(clippy::too_many_lines, reason = "one story")]
pub fn everything_is_found_by_what_it_is_told_by(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let head =
        issue(store, &w, made(&w, 1, 1), 10, |issued| IssuedDocument { po_number: Some(fixtures::line("PO-4711")), ..issued });
    let draft = w.open(store, made(&w, 2, 2));
    let with_po = Contract { po_number: Some(fixtures::line("PO-4711")), ..w.another_contract(12) };
    let event = fixtures::event(&FreshIds, &draft, &w.product.usage_product_ref, later(1), fixtures::quantity("2"));
    let key = IdempotencyKey::parse("batch-7").expect("a key");
    let kept = EventKeyRecord {
        key,
        facts: FactsDigest([0; 16]),
        event_ref: event.event_ref,
        answer: "{}".to_owned(),
        form: AnswerForm::Event,
    };
    let taken = NewEventKeyRecord { kept, document_ref: draft.document_ref, document_number: draft.number.clone() };
    let payment = Payment {
        payment_ref: PaymentRef::from_uuid(uuid::Uuid::now_v7()),
        kind: PaymentKind::Payment,
        document_ref: Some(head.document_ref),
        amount: cents(1),
        paid_date: date("2026-02-01"),
        reference: Some(fixtures::line("bank 4711")),
        method: None,
        metadata: Metadata::default(),
        used: cents(0),
        reversal: None,
        recorded_at: later(1),
        recorded_by: billing_domain::access::Actor::Service,
        updated_at: later(1),
    };
    let deposit = Payment {
        payment_ref: PaymentRef::from_uuid(uuid::Uuid::now_v7()),
        document_ref: None,
        reference: Some(fixtures::line("card 4712")),
        ..payment.clone()
    };
    let charge = super::charges::charge_of(&w.contract, "Setup");
    let taken_back = Charge { deleted: true, ..super::charges::charge_of(&w.contract, "Gone") };
    let mut api_key = fixtures::api_key(&FreshIds, w.org);
    api_key.name = Some(fixtures::line("Metering gateway"));
    write(store, |tx| {
        w.hold(tx)?;
        tx.insert_contract(w.org, &with_po, None)?;
        tx.insert_events(w.org, std::slice::from_ref(&event))?;
        keep_events(tx, w.org, w.customer.id, std::slice::from_ref(&taken))?;
        let account = AccountKey { customer_id: w.customer.id, entity_ref: head.entity_ref.clone(), currency: head.currency };
        let unapplied = tx.hold_account(w.org, &account)?;
        tx.put_account(
            w.org,
            &account,
            &[&payment, &deposit].map(|payment| AccountEntry::Recorded(Box::new(payment.clone()))),
            unapplied,
            later(1),
        )?;
        done(tx.insert_charge(w.org, &charge))?;
        done(tx.insert_charge(w.org, &taken_back))?;
        done(tx.insert_bank_account(w.org, &fixtures::bank_account("giro-1")))?;
        done(tx.insert_api_key(&api_key))
    });
    let number = head.number.to_string();
    let document = (SearchHitKind::Document, number.clone());
    let by_number = SearchTerms { document_number: Some(head.number.clone()), ..sought(&number) };
    assert_eq!(found(store, &w, &by_number), std::slice::from_ref(&document));
    let sequence = head.number.sequence;
    for (end, is_found) in [
        (sequence.to_string(), true),
        (format!("inv-{sequence}"), true),
        (format!("CRD-{sequence}"), false),
        (format!("INV-{}", sequence + 1000), false),
    ] {
        let by_end = SearchTerms { number_end: NumberEnd::parse(&end), ..sought(&end) };
        assert_eq!(found(store, &w, &by_end).contains(&document), is_found, "{end}");
    }
    let by_id = |id: uuid::Uuid| SearchTerms { id: Some(id), ..sought(&id.to_string()) };
    assert_eq!(found(store, &w, &by_id(head.document_ref.as_uuid())), std::slice::from_ref(&document));
    let contract = |number: &str| (SearchHitKind::Contract, number.to_owned());
    assert_eq!(found(store, &w, &SearchTerms { contract_number: Some(12), ..sought("C-12") }), [contract("C-12")]);
    assert_eq!(found(store, &w, &by_id(w.contract.contract_ref.as_uuid())), [contract("C-1")]);
    assert_eq!(found(store, &w, &sought("PO-4711")), [document, contract("C-12")]);
    let of_event = (SearchHitKind::UsageEvent, "batch-7".to_owned());
    assert_eq!(found(store, &w, &sought("batch-7")), std::slice::from_ref(&of_event));
    // The plain key of the event isn't stored, so the reference is the search result's text.
    let by_itself = (SearchHitKind::UsageEvent, event.event_ref.to_string());
    assert_eq!(found(store, &w, &by_id(event.event_ref.as_uuid())), [by_itself]);
    let of_payment = (SearchHitKind::Payment, "bank 4711".to_owned());
    assert_eq!(found(store, &w, &sought("bank 4711")), std::slice::from_ref(&of_payment));
    assert_eq!(found(store, &w, &by_id(payment.payment_ref.as_uuid())), [of_payment]);
    let of_charge = (SearchHitKind::Charge, "Setup".to_owned());
    assert_eq!(found(store, &w, &sought(charge.charge_ref.as_str())), [of_charge]);
    assert_eq!(found(store, &w, &sought(taken_back.charge_ref.as_str())), []);
    let of_account: Vec<SearchHitKind> = found(store, &w, &sought("giro-1")).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(of_account, [SearchHitKind::BankAccount]);
    let of_key = (SearchHitKind::ApiKey, api_key.api_key.clone());
    for text in [api_key.api_key.as_str(), "metering"] {
        assert_eq!(found(store, &w, &sought(text)), std::slice::from_ref(&of_key), "{text}");
        assert_eq!(found(store, &w, &SearchTerms { with_api_keys: false, ..sought(text) }), []);
    }
    let of_deposit = read(store, |tx| tx.search(w.org, &sought("card 4712"), 20)).remove(0);
    assert_eq!((of_deposit.document_ref, of_deposit.customer_ref), (None, Some(w.customer.customer_ref.clone())));
    let whole = read(store, |tx| tx.search(w.org, &by_id(payment.payment_ref.as_uuid()), 20)).remove(0);
    assert_eq!((whole.document_ref, whole.customer_ref), (Some(head.document_ref), Some(w.customer.customer_ref.clone())));
    // The other organization finds nothing.
    for sought in [
        by_number,
        by_id(head.document_ref.as_uuid()),
        by_id(event.event_ref.as_uuid()),
        by_id(payment.payment_ref.as_uuid()),
        by_id(with_po.contract_ref.as_uuid()),
        sought("PO-4711"),
        sought("batch-7"),
        sought("bank 4711"),
        sought("metering"),
        sought(charge.charge_ref.as_str()),
        sought("giro-1"),
    ] {
        assert_eq!(found(store, &stranger, &sought), [], "{sought:?}");
    }
}

pub fn names_are_found_by_how_they_begin_after_what_is_exact(store: &dyn Store) {
    let w = world(store);
    let mut customers = Vec::new();
    for (reference, name) in [("x1", "Search me later"), ("x2", "search ME"), ("search me", "Other")] {
        let mut customer = fixtures::customer(&FreshIds, &reference.replace(' ', "-"));
        customer.profile.name = fixtures::line(name);
        write(store, |tx| done(tx.insert_customer(w.org, &customer)));
        customers.push(customer);
    }
    let (mut entity, mut product, mut pricing) = (fixtures::entity("y1"), w.product.clone(), w.pricing.clone());
    entity.profile.name = fixtures::line("Search me GmbH");
    product.profile.name = fixtures::line("Search me calls");
    pricing.content.name = fixtures::line("Search me plan");
    write(store, |tx| {
        done(tx.insert_entity(w.org, &entity))?;
        updated(tx.update_usage_product(w.org, &product))?;
        updated(tx.update_pricing(w.org, &pricing))
    });
    let names = |text: &str| found(store, &w, &sought(text)).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    let begin = ["Search me later", "Search me GmbH", "Search me plan", "Search me calls"];
    assert_eq!(names("search me"), [&["search ME"][..], &begin].concat());
    assert_eq!(
        names("search-me"),
        ["Other", "Search me later", "search ME", "Search me GmbH", "Search me plan", "Search me calls"]
    );
    assert_eq!(names("me later"), ["Search me later"]);
    assert_eq!(names("earch"), Vec::<String>::new());
    assert_eq!(read(store, |tx| tx.search(w.org, &sought("search"), 2)).len(), 2);
}

pub fn words_are_found_inside_names_addresses_and_numbers(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let mut customer = fixtures::customer(&FreshIds, "h1");
    customer.profile.name = fixtures::line("Harbor Robotics GmbH");
    customer.profile.legal_name = Some(fixtures::line("Ärzte & Söhne"));
    customer.profile.email = Some(fixtures::line("Billing.Team@Dock.example"));
    customer.profile.tax_id = Some(fixtures::line("12/345/678"));
    customer.profile.legal.vat_id = Some("DE123456789".parse().expect("a VAT number"));
    let mut other = fixtures::customer(&FreshIds, "h2");
    other.profile.name = fixtures::line("Harbor Lights");
    write(store, |tx| {
        done(tx.insert_customer(w.org, &customer))?;
        done(tx.insert_customer(w.org, &other))
    });
    let names = |w: &World, text: &str| found(store, w, &sought(text)).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    let both = ["Harbor Robotics GmbH", "Harbor Lights"];
    assert_eq!(names(&w, "HARB"), both);
    for text in [
        "robot",
        "robo harbor",
        "ärzte",
        "billing.team@dock.example",
        "dock",
        "12/345/678",
        "12345678",
        "DE123456789",
        "123456789",
        "de 123 456 789",
    ] {
        assert_eq!(names(&w, text), both[..1], "{text}");
        assert_eq!(names(&stranger, text), Vec::<String>::new(), "{text}");
    }
    for text in ["obotics", "robot lights", "DE1234567891"] {
        assert_eq!(names(&w, text), Vec::<String>::new(), "{text}");
    }
    customer.profile.name = fixtures::line("Quay Cranes");
    write(store, |tx| updated(tx.update_customer(w.org, &customer)));
    assert_eq!(names(&w, "robot"), Vec::<String>::new());
    assert_eq!(names(&w, "crane"), ["Quay Cranes"]);
}
