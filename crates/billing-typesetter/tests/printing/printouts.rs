//! Documents to render.

use billing_domain::contract::terms::QuantityStep;
use billing_domain::document::calculation::LineCalculation;
use billing_domain::document::legal_particulars::{CorrectedDocument, LegalParticulars, LegalParticularsInput};
use billing_domain::document::lines::{BillWith, DiscountAndTax, DocumentLine, FamilySums, LineCharge, LineUsage};
use billing_domain::document::linking::SlotKind;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::printout::{PrintedDates, Printout};
use billing_domain::document::totals::{RatedLines, total_up};
use billing_domain::document::{DocumentKind, DraftContent, Parties, Purpose};
use billing_domain::money::{Currency, Money};
use billing_domain::party::bank::{BankAccountProfile, Bic, Iban};
use billing_domain::party::legal::{BuyerReference, Contact, LegalNote, VatId};
use billing_domain::party::{Address, Customer, Entity};
use billing_domain::rating::RatedTier;
use billing_domain::refs::{DocumentRef, ProductNo};
use billing_domain::tax::{StatedTax, TaxBasis, TaxTreatment};
use billing_testkit::{CountingIds, fixtures};
use fixtures::{agreed, date, line, line_item_id, percent, period, price, pricing, prose};
use rust_decimal::Decimal;
use uuid::Uuid;

/// Parses an exact decimal.
pub(crate) fn dec(text: &str) -> Decimal {
    Decimal::from_str_exact(text).expect(text)
}

/// A product of a document: name, discount and tax in percent, tax basis, and lines.
pub(crate) type Billed<'b> = (&'b str, &'b str, &'b str, TaxBasis, Vec<DocumentLine>);

/// Returns a fixed line of January.
pub(crate) fn fixed(name: &str, amount: Money) -> DocumentLine {
    DocumentLine {
        line_item_id: Some(line_item_id("item")),
        name: line(name),
        period_start: date("2026-01-01"),
        service_period: period("2026-01-01", "2026-01-31"),
        bill_with: BillWith::Fixed,
        usage: None,
        quantities: Vec::new(),
        unit_code: None,
        charge: None,
        has_default_tax: false,
        amount,
        calculation: None,
    }
}

/// Returns a line with its calculation, as documents of format 3 have it.
pub(crate) fn calculated(line: DocumentLine, calculation: LineCalculation) -> DocumentLine {
    DocumentLine { calculation: Some(Box::new(calculation)), ..line }
}

/// Returns the calculation of a usage quantity with one unit price.
pub(crate) fn per_unit(quantity: &str, unit_price: &str) -> LineCalculation {
    LineCalculation {
        usage_quantity: Some(dec(quantity)),
        billable_quantity: Some(dec(quantity)),
        unit_price: unit_price.parse().ok(),
        ..LineCalculation::default()
    }
}

/// Returns a usage line with one unit price.
pub(crate) fn used(name: &str, quantity: &str, unit: &str, unit_price: &str, amount: Money) -> DocumentLine {
    let usage = LineUsage {
        usage_product_ref: fixtures::usage_product_ref("used"),
        quantity: dec(quantity),
        unit: Some(line(unit)),
        unit_price: Some(price(unit_price)),
        tiers: Vec::new(),
    };
    DocumentLine { bill_with: BillWith::Usage, usage: Some(usage), ..fixed(name, amount) }
}

/// Returns a usage line with tiers. Each tier has a quantity, a unit price and a flat amount.
pub(crate) fn tiered(name: &str, unit: &str, tiers: &[(&str, &str, &str)], amount: Money) -> DocumentLine {
    let mut line = used(name, "0", unit, "0", amount);
    let usage = line.usage.as_mut().expect("usage");
    usage.unit_price = None;
    for (quantity, unit_price, flat) in tiers {
        let tier = billing_domain::catalog::Tier { up_to: None, unit_price: price(unit_price), flat_amount: price(flat) };
        usage.quantity += dec(quantity);
        let amount = dec(quantity) * dec(unit_price) + dec(flat);
        usage.tiers.push(RatedTier { tier, quantity: dec(quantity).into(), amount: amount.into() });
    }
    line
}

/// Returns a quantity from a day on.
pub(crate) fn step(from: &str, quantity: &str) -> QuantityStep {
    QuantityStep { from: date(from), quantity: fixtures::quantity(quantity) }
}

/// Returns the line of a manual charge.
pub(crate) fn charged(name: &str, quantity: &str, unit_price: &str, amount: Money) -> DocumentLine {
    let charge = LineCharge {
        date: date("2026-01-20"),
        quantity: fixtures::quantity(quantity),
        unit: Some(line("h")),
        unit_price: unit_price.parse().expect(unit_price),
    };
    DocumentLine { charge: Some(charge), ..fixed(name, amount) }
}

/// Returns an amount in a currency.
pub(crate) fn money(currency: &str, minor: i64) -> Money {
    Money::from_minor(minor, fixtures::currency(currency))
}

/// Returns an amount in EUR from cents.
pub(crate) fn eur(minor: i64) -> Money {
    money("EUR", minor)
}

fn address(line1: &str, zip_code: &str, city: &str, country: &str) -> Address {
    Address {
        line1: Some(prose(line1)),
        zip_code: Some(prose(zip_code)),
        city: Some(prose(city)),
        country: Some(prose(country)),
        ..Address::default()
    }
}

/// Returns the customer and the entity of [`printout`].
pub(crate) fn parties() -> (Customer, Entity) {
    let (mut customer, mut entity) = (fixtures::customer(&CountingIds::new(), "acme"), fixtures::entity("main"));
    customer.profile.name = line("Acme");
    customer.profile.legal_name = Some(line("Acme SAS"));
    customer.profile.billing_address = Some(address("1 rue de la Paix", "75002", "Paris", "France"));
    customer.profile.legal.vat_id = VatId::parse("FR40303265045").ok();
    entity.profile.name = line("Northwind Cloud");
    entity.profile.legal_name = Some(line("Northwind Cloud GmbH"));
    entity.profile.address = Some(address("Am Markt 1", "28195", "Bremen", "Germany"));
    entity.profile.legal.vat_id = VatId::parse("DE123456789").ok();
    entity.profile.tax_id = Some(line("60/123/45678"));
    entity.profile.paper.contact = Some(Contact {
        name: Some(line("Billing")),
        phone: Some(line("+49 421 1234")),
        email: Some(line("billing@northwind.example")),
    });
    entity.profile.paper.tax_label = Some(line("VAT"));
    let text = "Northwind Cloud GmbH, register court Bremen HRB 12345. Managing directors: Ada Lovelace, Grace Hopper.";
    entity.profile.paper.legal_notes = vec![LegalNote { subject_code: None, text: prose(text) }];
    (customer, entity)
}

/// Returns the bank account for payments.
pub(crate) fn bank_account() -> BankAccountProfile {
    BankAccountProfile {
        account_name: Some(line("Northwind Cloud GmbH")),
        iban: Iban::parse("DE89370400440532013000").ok(),
        bic: Bic::parse("COBADEFFXXX").ok(),
        bank_name: Some(line("Commerzbank")),
        ..BankAccountProfile::default()
    }
}

/// Returns an issued document of January between these parties.
pub(crate) fn printout_between(
    (customer, entity): &(Customer, Entity),
    kind: DocumentKind,
    currency: Currency,
    billed: Vec<Billed<'_>>,
) -> Printout {
    let named: Vec<_> = billed
        .iter()
        .map(|(name, ..)| {
            let mut pricing = pricing("api", vec![fixtures::fixed("base", "1")]);
            pricing.content.name = line(name);
            agreed(&pricing, "2026-01-01", "2026-12-31")
        })
        .collect();
    let rated = billed.into_iter().zip(&named).zip(0..).map(|(((_, discount, tax, treatment, lines), terms), no)| RatedLines {
        product_no: ProductNo(no),
        terms,
        rates: DiscountAndTax {
            discount: percent(discount),
            tax: TaxTreatment::of(&[StatedTax { rate: Some(percent(tax)), basis: treatment }]),
        },
        lines,
    });
    let content = total_up(currency, kind, rated.collect(), &FamilySums::default()).expect("small amounts");
    let facts = LegalParticularsInput {
        buyer_reference: BuyerReference::parse("04011000-12345-35").ok(),
        bank_account: Some(bank_account()),
        corrects: None,
        corrects_last: None,
        tax_in_currency: None,
        supply: None,
    };
    let contract = fixtures::contract(&CountingIds::new(), customer, vec![named[0].clone()]);
    let mut head = fixtures::document_head(&CountingIds::new(), &contract, entity, period("2026-01-01", "2026-01-31"));
    head.document_ref = DocumentRef::from_uuid(Uuid::from_u128(7));
    head.currency = currency;
    head.kind = kind;
    head.number = DocumentNumber { kind, sequence: 1042, ..head.number };
    head.purpose = if kind == DocumentKind::Invoice { Purpose::Regular(SlotKind::Period) } else { Purpose::Adjustment };
    let mut paper = LegalParticulars::of(customer, entity, facts);
    if kind != DocumentKind::Invoice {
        let number = DocumentNumber { kind: DocumentKind::Invoice, ..head.number.clone() };
        paper.corrects = Some(CorrectedDocument { number, issue_date: date("2026-02-01") });
    }
    let due_date = (kind != DocumentKind::Credit).then(|| date("2026-03-03"));
    Printout {
        head,
        issued: Some(PrintedDates { issue_date: date("2026-02-01"), due_date }),
        draft_content: DraftContent {
            parties: Parties::of(customer, entity),
            po_number: Some(line("PO-2026-0815")),
            note: Some(prose("Thank you for your business.")),
            content,
            paper: Some(Box::new(paper)),
        },
        at_issue: None,
        e_invoice: None,
    }
}

/// Returns an issued document of January.
pub(crate) fn printout(kind: DocumentKind, billed: Vec<Billed<'_>>) -> Printout {
    printout_between(&parties(), kind, fixtures::eur(), billed)
}

/// Returns an invoice of the most common kind: a fee and calls in tiers, with a discount.
pub(crate) fn invoice() -> Printout {
    let tiers = [("100", "0.10", "0"), ("900", "0.05", "0"), ("500", "0.01", "0")];
    let lines = vec![fixed("Platform fee", eur(4900)), tiered("API calls", "calls", &tiers, eur(6000))];
    printout(DocumentKind::Invoice, vec![("Northwind API", "10", "19", TaxBasis::default(), lines)])
}
