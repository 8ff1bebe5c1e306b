//! The data of a statement's template: texts in the customer's language, by position.

use std::collections::BTreeMap;

use billing_domain::codes::CountryCode;
use billing_domain::money::MoneySum;
use billing_domain::party::Entity;
use billing_domain::party::legal::PaperSize;
use billing_domain::ports::PrintError;
use billing_domain::receivables::{AccountStatement, StatementEntry, StatementKind, StatementLine, StatementPrintout};
use billing_domain::refs::EntityRef;
use serde::Serialize;

use crate::figures::Figures;
use crate::texts::{Text, address_lines, font_families};
use crate::translations::{Translations, with};

type PrintResult<T> = Result<T, PrintError>;

/// The data of the template.
#[derive(Debug, Serialize)]
pub(crate) struct StatementData {
    language: &'static str,
    paper: &'static str,
    fonts: [&'static str; 2],
    heading: &'static str,
    /// The first and the last day.
    period: Option<String>,
    customer: Text,
    address: Vec<Text>,
    /// The text instead of accounts, if there are none.
    empty: &'static str,
    columns: [&'static str; 4],
    accounts: Vec<Account>,
    foot: String,
    page: [&'static str; 2],
}

/// The statement of one entity and currency.
#[derive(Debug, Serialize)]
struct Account {
    entity: Text,
    currency: &'static str,
    opening: [String; 2],
    rows: Vec<Row>,
    closing: [String; 2],
}

#[derive(Debug, Serialize)]
struct Row {
    date: String,
    what: Text,
    amount: String,
    balance: String,
}

impl StatementData {
    /// Creates the template data of a customer's statements. The language is the customer's, else the first entity's.
    ///
    /// # Errors
    /// Returns [`PrintError::Failed`] if a library fails.
    pub(crate) fn of(statement: &StatementPrintout) -> PrintResult<Self> {
        let profile = &statement.customer.profile;
        let seller = statement.entities.first();
        let of_seller = seller.and_then(|entity| entity.profile.legal.language);
        let language = profile.legal.language.or(of_seller).unwrap_or_default();
        let size = seller.map_or(PaperSize::A4, size_of);
        let words = Translations::of(language);
        let figures = Figures::of(language, size)?;
        let names: BTreeMap<&EntityRef, &Entity> = statement.entities.iter().map(|entity| (&entity.entity_ref, entity)).collect();
        let account = |account| of_account(account, &names, words, &figures);
        let name = profile.legal_name.as_ref().unwrap_or(&profile.name).as_str();
        let address = profile.billing_address.as_ref();
        let country = address.and_then(|address| address.country_code).map(CountryCode::as_str);
        Ok(Self {
            language: words.code,
            paper: match size {
                PaperSize::A4 => "a4",
                PaperSize::Letter => "us-letter",
            },
            fonts: font_families(language, country),
            heading: words.statement,
            period: period(statement, words, &figures)?,
            customer: Text::new(name),
            address: address.map(|address| address_lines(address, language)).unwrap_or_default(),
            empty: words.no_entries,
            columns: [words.date, words.document, words.amount, words.balance],
            accounts: statement.accounts.iter().map(account).collect::<PrintResult<_>>()?,
            foot: format!("{} · {}", words.statement, figures.date(statement.day)?),
            page: words.page,
        })
    }
}

/// Returns the page size of an entity's documents.
fn size_of(entity: &Entity) -> PaperSize {
    let country = entity.profile.address.as_ref().and_then(|address| address.country_code);
    entity.profile.paper.size.unwrap_or_else(|| PaperSize::of(country))
}

fn period(statement: &StatementPrintout, words: &Translations, figures: &Figures) -> PrintResult<Option<String>> {
    Ok(match (statement.from, statement.to) {
        (None, None) => None,
        (Some(from), None) => Some(with(words.from_day, &figures.date(from)?)),
        (None, Some(to)) => Some(with(words.to_day, &figures.date(to)?)),
        (Some(from), Some(to)) => Some(format!("{} – {}", figures.date(from)?, figures.date(to)?)),
    })
}

fn of_account(
    account: &AccountStatement,
    entities: &BTreeMap<&EntityRef, &Entity>,
    words: &Translations,
    figures: &Figures,
) -> PrintResult<Account> {
    let named = |entity: &&Entity| entity.profile.legal_name.as_ref().unwrap_or(&entity.profile.name).as_str().to_owned();
    let name = entities.get(&account.entity_ref).map_or_else(|| account.entity_ref.to_string(), named);
    let sum = |label: &str, balance: MoneySum| -> PrintResult<[String; 2]> { Ok([label.to_owned(), figures.sum(balance)?]) };
    let row = |line: &StatementLine| {
        let StatementLine { entry, balance } = line;
        Ok(Row {
            date: figures.date(entry.date)?,
            what: Text::new(&described(entry, words)),
            amount: figures.amount(entry.amount)?,
            balance: figures.sum(*balance)?,
        })
    };
    Ok(Account {
        entity: Text::new(&name),
        currency: account.opening_balance.currency().code(),
        opening: sum(words.opening_balance, account.opening_balance)?,
        rows: account.lines.iter().map(row).collect::<PrintResult<_>>()?,
        closing: sum(words.closing_balance, account.closing_balance)?,
    })
}

/// Returns the kind of an entry with the number of its document. An entry of a deposit has its reference instead, if there is
/// one.
fn described(entry: &StatementEntry, words: &Translations) -> String {
    let what = match entry.kind {
        StatementKind::Invoice => words.invoice,
        StatementKind::Debit => words.debit,
        StatementKind::Credit => words.credit,
        StatementKind::Void => words.voided,
        StatementKind::Payment => words.payment_received,
        StatementKind::Refund => words.refund,
        StatementKind::Reversal => words.reversal,
        StatementKind::WriteOff => words.write_off,
    };
    match (&entry.document, &entry.reference) {
        (Some((_, number)), _) => format!("{what} {number}"),
        (None, Some(reference)) => format!("{what} {reference}"),
        (None, None) => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::document::DocumentKind;
    use billing_domain::document::numbering::DocumentNumber;
    use billing_domain::money::Money;
    use billing_domain::party::NumberPrefix;
    use billing_domain::party::legal::Language;
    use billing_domain::receivables::statement;
    use billing_domain::refs::DocumentRef;
    use billing_domain::text::OneLine;
    use billing_testkit::{CountingIds, fixtures};
    use fixtures::date;
    use uuid::Uuid;

    use super::*;

    fn entry(day: &str, kind: StatementKind, cents: i64) -> StatementEntry {
        let number =
            DocumentNumber { prefix: NumberPrefix::parse("UB").expect("a prefix"), kind: DocumentKind::Invoice, sequence: 1 };
        StatementEntry {
            entity_ref: fixtures::entity_ref("main"),
            date: date(day),
            kind,
            document: Some((DocumentRef::from_uuid(Uuid::from_u128(1)), number)),
            payment_ref: None,
            reference: None,
            amount: Money::from_minor(cents, fixtures::eur()),
        }
    }

    #[test]
    fn a_statement_has_the_words_of_the_customers_language() {
        let entries = vec![
            entry("2026-01-02", StatementKind::Invoice, 123_456),
            entry("2026-02-03", StatementKind::Payment, -23_456),
            entry("2026-03-04", StatementKind::Void, -100_000),
            StatementEntry {
                document: None,
                reference: OneLine::parse("TX-1").ok(),
                ..entry("2026-03-05", StatementKind::Payment, -1_000)
            },
            StatementEntry { document: None, ..entry("2026-03-06", StatementKind::Reversal, 1_000) },
        ];
        let mut customer = fixtures::customer(&CountingIds::new(), "acme");
        let entity = fixtures::entity("main");
        let printed = |customer: &billing_domain::party::Customer| {
            StatementData::of(&StatementPrintout {
                customer: customer.clone(),
                entities: vec![entity.clone()],
                accounts: statement(entries.clone(), Some(date("2026-02-01")), None).expect("small amounts"),
                from: Some(date("2026-02-01")),
                to: None,
                day: date("2026-03-31"),
            })
            .expect("data")
        };
        let english = printed(&customer);
        assert_eq!((english.heading, english.period.as_deref()), ("Account statement", Some("from 1 Feb 2026")));
        customer.profile.legal.language = Some(Language::De);
        let german = printed(&customer);
        let account = &german.accounts[0];
        assert_eq!((german.heading, account.entity.0.as_str(), account.currency), ("Kontoauszug", "main", "EUR"));
        assert_eq!(account.opening, ["Anfangssaldo", "1.234,56"]);
        let rows: Vec<[&str; 4]> = account
            .rows
            .iter()
            .map(|row| [row.date.as_str(), row.what.0.as_str(), row.amount.as_str(), row.balance.as_str()])
            .collect();
        let wanted = [
            ["03.02.2026", "Zahlungseingang UB-INV-1", "-234,56", "1.000,00"],
            ["04.03.2026", "Storno UB-INV-1", "-1.000,00", "0,00"],
            ["05.03.2026", "Zahlungseingang TX-1", "-10,00", "-10,00"],
            ["06.03.2026", Translations::of(Language::De).reversal, "10,00", "0,00"],
        ];
        assert_eq!(rows, wanted);
        assert_eq!(account.closing, ["Endsaldo", "0,00"]);
    }
}
