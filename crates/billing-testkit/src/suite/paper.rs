//! Bank accounts, exchange rates and logos.

use billing_domain::page::Page;
use billing_domain::party::appearance::{Logo, LogoFormat};
use billing_domain::party::bank::{BankAccount, BankAccountProfile};
use billing_domain::ports::{Insertion, Store, Update};
use billing_domain::tax::ExchangeRate;

use super::{all, done, later, page, read, updated, world, write};
use crate::FreshIds;
use crate::fixtures::{self, bank_account, date};

fn in_dollars() -> BankAccountProfile {
    BankAccountProfile {
        account_number: Some(fixtures::line("000123456789")),
        routing_number: "021000021".parse().ok(),
        ..BankAccountProfile::default()
    }
}

pub fn a_bank_account_comes_back_and_is_updated(store: &dyn Store) {
    let w = world(store);
    let account = bank_account("main:1");
    write(store, |tx| done(tx.insert_bank_account(w.org, &account)));
    let found = |account: &BankAccount| {
        let reference = std::slice::from_ref(&account.account_ref);
        read(store, |tx| tx.bank_accounts_by_refs(w.org, reference))
    };
    assert_eq!(found(&account), std::slice::from_ref(&account));
    // An update replaces only the profile.
    let changed = BankAccount { profile: in_dollars(), created_at: later(99), ..account.clone() };
    write(store, |tx| updated(tx.update_bank_account(w.org, &changed)));
    assert_eq!(found(&account), [BankAccount { created_at: account.created_at, ..changed.clone() }]);
    write(store, |tx| {
        assert_eq!(tx.insert_bank_account(w.org, &changed)?, Insertion::Taken("billing_account_id"));
        assert_eq!(tx.update_bank_account(w.org, &bank_account("MAIN:1"))?, Update::Unknown);
        Ok(())
    });
    assert_eq!(found(&bank_account("nothing")), []);
    assert_eq!(read(store, |tx| tx.bank_accounts_by_refs(w.org, &[])), []);
}

pub fn bank_accounts_come_by_creation_in_pages(store: &dyn Store) {
    let w = world(store);
    for (reference, seconds) in [("b", 5), ("a", 5), ("Z", 5), ("old", 1), ("late", 9)] {
        let account = BankAccount { created_at: later(seconds), ..bank_account(reference) };
        write(store, |tx| done(tx.insert_bank_account(w.org, &account)));
    }
    let refs = |found: Page<BankAccount>| -> (Vec<String>, u64) {
        (found.items.iter().map(|account| account.account_ref.to_string()).collect(), found.total)
    };
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(refs(read(store, |tx| tx.bank_accounts(w.org, all()))), (names(&["old", "Z", "a", "b", "late"]), 5));
    assert_eq!(refs(read(store, |tx| tx.bank_accounts(w.org, page(2, 1)))), (names(&["a", "b"]), 5));
}

fn rate(to: &str, day: &str, rate: &str) -> ExchangeRate {
    ExchangeRate { from: fixtures::eur(), to: fixtures::currency(to), date: date(day), rate: fixtures::price(rate) }
}

pub fn the_newest_exchange_rate_on_a_day_or_before_counts(store: &dyn Store) {
    let w = world(store);
    let (march, april) = (rate("PLN", "2026-03-31", "4.250"), rate("PLN", "2026-04-30", "4.310000000001"));
    write(store, |tx| {
        tx.put_exchange_rate(w.org, &april, later(1))?;
        tx.put_exchange_rate(w.org, &march, later(2))?;
        tx.put_exchange_rate(w.org, &rate("CZK", "2026-04-01", "24"), later(3))
    });
    let on = |day: &str| read(store, |tx| tx.exchange_rate(w.org, march.from, march.to, date(day)));
    assert_eq!(on("2026-03-30"), None);
    assert_eq!(on("2026-03-31"), Some(march));
    assert_eq!(on("2026-04-29"), Some(march));
    assert_eq!(on("2026-04-30"), Some(april));
    assert_eq!(on("9999-12-31"), Some(april));
    // The digits are preserved.
    assert_eq!(on("2026-03-31").map(|found| found.rate.as_decimal().to_string()), Some("4.250".to_owned()));
    assert_eq!(read(store, |tx| tx.exchange_rate(w.org, march.to, march.from, date("2026-12-31"))), None);
}

pub fn an_exchange_rate_takes_the_place_of_the_days_other_one(store: &dyn Store) {
    let w = world(store);
    let (wrong, right) = (rate("PLN", "2026-03-31", "42.5"), rate("PLN", "2026-03-31", "4.25"));
    let other = rate("PLN", "2026-01-31", "4.2");
    write(store, |tx| {
        tx.put_exchange_rate(w.org, &wrong, later(1))?;
        tx.put_exchange_rate(w.org, &other, later(2))?;
        tx.put_exchange_rate(w.org, &right, later(3))
    });
    let found = read(store, |tx| tx.exchange_rates(w.org, all()));
    assert_eq!((found.items, found.total), (vec![right, other], 2));
    assert_eq!(read(store, |tx| tx.exchange_rates(w.org, page(1, 1))).items, [other]);
}

pub fn another_organization_sees_and_changes_no_accounts_and_rates(store: &dyn Store) {
    let w = world(store);
    let stranger = fixtures::organization(&FreshIds);
    let (account, known) = (bank_account("main"), rate("PLN", "2026-03-31", "4.25"));
    write(store, |tx| {
        done(tx.insert_organization(&stranger))?;
        done(tx.insert_bank_account(w.org, &account))?;
        tx.put_exchange_rate(w.org, &known, later(1))
    });
    write(store, |tx| {
        assert_eq!(tx.bank_accounts(stranger.id, all())?, Page::empty());
        assert_eq!(tx.bank_accounts_by_refs(stranger.id, std::slice::from_ref(&account.account_ref))?, []);
        assert_eq!(tx.update_bank_account(stranger.id, &account)?, Update::Unknown);
        assert_eq!(tx.exchange_rates(stranger.id, all())?, Page::empty());
        assert_eq!(tx.exchange_rate(stranger.id, known.from, known.to, known.date)?, None);
        // The other organization has its own account and rate with the same reference and day.
        done(tx.insert_bank_account(stranger.id, &BankAccount { profile: in_dollars(), ..account.clone() }))?;
        tx.put_exchange_rate(stranger.id, &rate("PLN", "2026-03-31", "9"), later(2))
    });
    assert_eq!(read(store, |tx| tx.bank_accounts(w.org, all())).items, [account]);
    assert_eq!(read(store, |tx| tx.exchange_rates(w.org, all())).items, [known]);
}

pub fn the_image_of_a_logo_is_stored_once_in_its_organization(store: &dyn Store) {
    let w = world(store);
    let stranger = fixtures::organization(&FreshIds);
    let received = fixtures::logo();
    let named = Logo { image: None, ..received.clone() };
    write(store, |tx| {
        done(tx.insert_organization(&stranger))?;
        tx.keep_logo(w.org, &named)?;
        assert_eq!(tx.logo_with_image(w.org, &named)?, None, "a logo without its image is not stored");
        tx.keep_logo(w.org, &received)?;
        tx.keep_logo(w.org, &received)
    });
    assert_eq!(read(store, |tx| tx.logo_with_image(w.org, &named)), Some(received));
    assert_eq!(read(store, |tx| tx.logo_with_image(stranger.id, &named)), None);
    let other_format = Logo { format: LogoFormat::Png, ..named };
    assert_eq!(read(store, |tx| tx.logo_with_image(w.org, &other_format)), None);
}
