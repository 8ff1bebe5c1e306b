//! Tests of e-invoices: the business terms of documents, and the terms that documents lack (billing rules 10).

use billing_domain::codes::{AddressScheme, IdentifierScheme};
use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::einvoice::business_terms::{Allowance, BusinessTerms, InvoiceLine, TaxSubtotal, Totals, TypeCode};
use billing_domain::einvoice::{EInvoiceError, Syntax, missing_of_parties};
use billing_domain::money::Money;
use billing_domain::party::legal::{
    BuyerReference, Contact, EInvoiceProfile, EInvoiceSettings, ElectronicAddress, Registration, VatId,
};
use billing_domain::party::{Address, CustomerProfile, EntityProfile, NetTerms, OnlinePaymentDetails};
use billing_domain::simulate::{
    Bill, CustomerChange, EntityChange, Prices, SimulatedDocument, Simulation, Terms, charge, credit, customer, entity, flat,
    graduated, package, per_unit, pricing, terms,
};
use billing_domain::tax::TaxCategory;
use billing_testkit::{CountingIds, fixtures};
use fixtures::{line, prose};

fn address(country: &str) -> Address {
    Address {
        line1: Some(prose("Street 1")),
        city: Some(prose("Town")),
        zip_code: Some(prose("12345")),
        country_code: country.parse().ok(),
        ..Address::default()
    }
}

fn email_address(value: &str) -> ElectronicAddress {
    ElectronicAddress { scheme: AddressScheme::parse("EM").expect("a scheme"), value: line(value) }
}

/// Sets the data of a buyer that suffices for each profile.
fn buyer(profile: &mut CustomerProfile) {
    profile.legal_name = Some(line("Buyer SAS"));
    profile.billing_address = Some(address("FR"));
    profile.legal.vat_id = VatId::parse("FR40303265045").ok();
    profile.legal.electronic_address = Some(email_address("buyer@example.com"));
    profile.buyer_reference = BuyerReference::parse("04011000-12345-35").ok();
}

/// Sets the data of a seller that suffices for each profile.
fn seller(profile: &mut EntityProfile) {
    profile.legal_name = Some(line("Seller GmbH"));
    profile.address = Some(address("DE"));
    profile.legal.vat_id = VatId::parse("DE123456789").ok();
    profile.legal.electronic_address = Some(email_address("seller@example.com"));
    profile.paper.contact = Some(Contact {
        name: Some(line("Billing")),
        phone: Some(line("+49 421 1234")),
        email: Some(line("billing@example.com")),
    });
    profile.payment.online = Some(OnlinePaymentDetails::default());
}

/// Returns a simulation with complete parties and a change of each.
fn changed(
    of_buyer: impl Fn(&mut CustomerProfile) + Send + Sync + 'static,
    of_seller: impl Fn(&mut EntityProfile) + Send + Sync + 'static,
) -> Simulation {
    let buyer_change: CustomerChange = customer().with(buyer).with(of_buyer);
    let seller_change: EntityChange = entity("default").with(seller).with(of_seller);
    Simulation::new().customer(buyer_change).entity(seller_change)
}

fn complete() -> Simulation {
    changed(|_| {}, |_| {})
}

fn tiers() -> Prices {
    graduated([(Some("100"), "0.10"), (Some("1000"), "0.05"), (None, "0.01")])
}

/// Returns the terms of a plan with a fee of 49.00 and calls in tiers.
fn plan() -> Terms {
    terms("2026-01-01", "2026-12-31").pricing("plan").fixed("fee", "49.00").usage("calls", tiers())
}

fn written(document: &SimulatedDocument) -> BusinessTerms {
    document.e_invoice().expect("an issued document").unwrap_or_else(|error| panic!("{document}: {error}"))
}

/// Returns what a document's e-invoice lacks: the pointers, each with its rule.
fn lacks(bill: &Bill, number: &str) -> Vec<String> {
    match bill.document(number).e_invoice().expect("an issued document") {
        Err(EInvoiceError::Incomplete(missing)) => {
            missing.iter().map(|missing| format!("{} {}", missing.pointer, missing.detail)).collect()
        }
        Err(EInvoiceError::Unavailable(reason)) => panic!("{number}: {reason}"),
        Ok(_) => Vec::new(),
    }
}

fn amount(money: Money) -> String {
    money.to_decimal().to_string()
}

/// Returns BT-106, 107, 109, 110, 112.
fn sums(terms: &BusinessTerms) -> [String; 5] {
    let Totals { lines, allowances, net, tax, total, .. } = terms.totals;
    [lines, allowances, net, tax, total].map(amount)
}

/// Returns BT-129, 146 and 131 of each line.
fn lines(terms: &BusinessTerms) -> Vec<String> {
    let shown = |line: &InvoiceLine| format!("{} × {} = {}", line.quantity, line.unit_price, amount(line.amount));
    terms.lines.iter().map(shown).collect()
}

/// Returns the category, the base and the tax of each entry of BG-23.
fn taxes(terms: &BusinessTerms) -> Vec<String> {
    let shown = |tax: &TaxSubtotal| format!("{} {} {}", tax.category.as_str(), amount(tax.base), amount(tax.tax));
    terms.taxes.iter().map(shown).collect()
}

/// Checks the sums that EN 16931 requires (BR-CO-10 to 16).
#[track_caller]
fn assert_adds_up(terms: &BusinessTerms) {
    let sum = |amounts: &mut dyn Iterator<Item = Money>| amounts.map(Money::minor).sum::<i64>();
    let Totals { lines, allowances, net, tax, total, paid, due } = terms.totals;
    assert_eq!(sum(&mut terms.lines.iter().map(|line| line.amount)), lines.minor(), "BR-CO-10");
    assert_eq!(sum(&mut terms.allowances.iter().map(|allowance| allowance.amount)), allowances.minor(), "BR-CO-11");
    assert_eq!(lines.minor() - allowances.minor(), net.minor(), "BR-CO-13");
    assert_eq!(sum(&mut terms.taxes.iter().map(|entry| entry.tax)), tax.minor(), "BR-CO-14");
    assert_eq!(net.minor() + tax.minor(), total.minor(), "BR-CO-15");
    assert_eq!(total.minor() - paid.minor(), due.minor(), "BR-CO-16");
    for entry in &terms.taxes {
        let same = |category, rate| entry.category == category && entry.rate.is_none_or(|shown| shown == rate);
        let of_lines =
            terms.lines.iter().filter(|line| same(line.category, line.rate)).map(|line| line.amount.minor()).sum::<i64>();
        let allowed = terms.allowances.iter().filter(|allowance| same(allowance.category, allowance.rate));
        let allowed = allowed.map(|allowance| allowance.amount.minor()).sum::<i64>();
        assert_eq!(of_lines - allowed, entry.base.minor(), "BR-{}-08", entry.category.as_str());
    }
    assert!(terms.lines.iter().all(|line| line.unit_price.is_sign_positive()), "BR-27");
}

#[test]
fn the_terms_of_an_invoice_and_of_its_corrections() {
    let bill = complete()
        .contract(plan().tax("19").discount("10").net_terms(NetTerms::Days(14)))
        .event("2026-01-10T12:00:00Z", "calls", "1500")
        .named("calls")
        .late_event("2026-01-20T12:00:00Z", "calls", "600", "2026-02-03T12:00:00Z")
        .on("2026-02-10")
        .delete_event("calls")
        .until("2026-02-15")
        .expect("a simulation");

    let invoice = written(bill.document("UB-INV-1"));
    assert_eq!(sums(&invoice), ["109.00", "10.90", "98.10", "18.64", "116.74"]);
    assert_eq!(lines(&invoice), ["1 × 49.00 = 49.00", "1 × 60.00 = 60.00"]);
    assert_eq!(invoice.lines[1].description.as_deref(), Some("1500: 100 × 0.10, 900 × 0.05, 500 × 0.01"));
    assert_eq!(taxes(&invoice), ["S 98.10 18.64"]);
    let Allowance { percentage, reason_code, .. } = &invoice.allowances[0];
    let percentage = percentage.map(|(base, rate)| (amount(base), rate.as_decimal().to_string()));
    assert_eq!((percentage, *reason_code), (Some(("109.00".to_owned(), "10".to_owned())), Some("95")));
    assert_eq!((invoice.number.as_str(), invoice.type_code.as_str()), ("UB-INV-1", "380"));
    assert_eq!((amount(invoice.totals.due), amount(invoice.totals.paid)), ("116.74".to_owned(), "0.00".to_owned()));
    assert_eq!(invoice.due_date.map(|date| date.to_string()).as_deref(), Some("2026-02-15"));
    assert_eq!(invoice.payment_terms.as_deref(), Some("Payment due within 14 days"));
    assert!(invoice.preceding.is_empty());
    assert_eq!((invoice.specification().as_str(), invoice.process), ("urn:cen.eu:en16931:2017", None));
    assert_eq!(
        (invoice.seller.party.name.as_str(), invoice.seller.party.vat_id.as_deref()),
        ("Seller GmbH", Some("DE123456789"))
    );
    assert_adds_up(&invoice);

    // The tax of a correction is rounded together with the invoice: (98.10 + 5.40) × 19 % = 19.665.
    let debit = written(bill.document("UB-DBT-1"));
    assert_eq!(debit.type_code, TypeCode::Invoice);
    assert_eq!(sums(&debit), ["6.00", "0.60", "5.40", "1.03", "6.43"]);
    let preceding: Vec<&str> = debit.preceding.iter().map(|preceding| preceding.number.as_str()).collect();
    assert_eq!(preceding, ["UB-INV-1"]);
    assert_adds_up(&debit);

    let credit = written(bill.document("UB-CRD-1"));
    assert_eq!((credit.type_code.as_str(), credit.due_date), ("381", None));
    assert!(credit.totals.lines.minor() > 0, "the amounts of a credit are above zero");
    assert_eq!(credit.preceding, debit.preceding);
    assert_eq!(credit.payment.account, None);
    assert_adds_up(&credit);
}

#[test]
fn a_quantity_and_a_price_are_shown_if_they_give_the_amount() {
    let bill = complete()
        .contract(
            plan()
                .tax("19")
                .usage("data", per_unit("0.0025"))
                .usage("boxes", package("1000", "5.00"))
                .usage("free", per_unit("0.10").included("100")),
        )
        .event("2026-01-10T12:00:00Z", "data", "12345")
        .event("2026-01-10T12:00:00Z", "boxes", "1001")
        .event("2026-01-10T12:00:00Z", "free", "130")
        .on("2026-01-12")
        .charge(charge("goodwill", "2026-01-12", "-2.50").quantity("4"))
        .until("2026-02-05")
        .expect("a simulation");
    let invoice = written(bill.document("UB-INV-1"));
    let expected = [
        "1 × 49.00 = 49.00",
        "1 × 0.00 = 0.00",
        "12345 × 0.0025 = 30.86",
        "1 × 10.00 = 10.00",
        "30 × 0.10 = 3.00",
        "-4 × 2.50 = -10.00",
    ];
    assert_eq!(lines(&invoice), expected);
    assert_eq!(invoice.lines[3].description.as_deref(), Some("1001: 2 × 5.00 (1000)"));
    assert_adds_up(&invoice);
}

#[test]
fn lines_name_a_product_with_its_own_name_and_number_two_products_of_one_pricing() {
    let team = |workspace: &str| terms("2026-01-01", "2026-12-31").pricing("team").where_labels(&[("workspace", &[workspace])]);
    let prices = pricing("team").fixed("fee", "50.00").usage("calls", per_unit("0.10"));
    let of = |story: Simulation| {
        let invoice = written(story.until("2026-02-05").expect("a simulation").document("UB-INV-1"));
        let shown = |line: &InvoiceLine| format!("{} {:?}", line.name, line.product_no.map(|number| number.0));
        invoice.lines.iter().map(shown).collect::<Vec<_>>()
    };
    let one = complete().pricing(prices).contract(team("w1").named("Team w1").tax("19"));
    assert_eq!(of(one.clone()), ["Team w1: fee None", "Team w1: calls None"]);
    let both = ["Team w1: fee Some(0)", "Team w1: calls Some(0)", "fee Some(1)", "calls Some(1)"];
    assert_eq!(of(one.contract(team("w2").tax("19"))), both);
}

#[test]
fn taxes_of_one_category_are_one_entry() {
    let exempt = |pricing: &str, reason: &str| {
        terms("2026-01-01", "2026-12-31")
            .pricing(pricing)
            .fixed("fee", "10.00")
            .tax("0")
            .tax_category(TaxCategory::E, Some(reason))
    };
    let bill = complete()
        .contract(exempt("care", "Medical care"))
        .contract(exempt("school", "Education"))
        .contract(plan().tax("19"))
        .until("2026-02-05")
        .expect("a simulation");
    let invoice = written(bill.document("UB-INV-1"));
    assert_eq!(taxes(&invoice), ["E 20.00 0.00", "S 49.00 9.31"]);
    let reason = invoice.taxes[0].exemption_reason.as_deref().expect("a reason");
    assert!(reason == "Medical care; Education" || reason == "Education; Medical care", "{reason}");
    assert_adds_up(&invoice);
}

#[test]
fn what_is_not_subject_to_tax_has_no_rate_and_no_vat_number() {
    let untaxed = |of_seller: fn(&mut EntityProfile)| {
        let product = plan().tax("0").tax_category(TaxCategory::O, Some("Outside the scope"));
        changed(|_| {}, of_seller).contract(product).until("2026-02-05").expect("a simulation")
    };
    assert_eq!(lacks(&untaxed(|_| {}), "UB-INV-1"), ["/entity/registration BT-30, BR-CO-26"]);
    let registered = |profile: &mut EntityProfile| {
        let scheme = IdentifierScheme::parse("0002").ok();
        profile.legal.registration = Some(Registration { scheme, value: line("303265045") });
    };
    let invoice = written(untaxed(registered).document("UB-INV-1"));
    assert_eq!((&invoice.seller.party.vat_id, &invoice.buyer.vat_id), (&None, &None));
    assert_eq!((invoice.taxes[0].category, invoice.taxes[0].rate), (TaxCategory::O, None));
    let in_xrechnung = |profile: &mut EntityProfile| {
        profile.legal.registration = Some(Registration { scheme: None, value: line("HRB 1") });
        profile.paper.e_invoice.profile = EInvoiceProfile::Xrechnung;
    };
    let invoice = written(untaxed(in_xrechnung).document("UB-INV-1"));
    assert!(invoice.taxes[0].rate.is_some(), "BR-DE-14");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table or story")]
fn each_missing_term_is_named_with_its_rule() {
    type Change = (fn(&mut CustomerProfile), fn(&mut EntityProfile));
    let none: Change = (|_| {}, |_| {});
    let rows: &[(EInvoiceProfile, Change, &[&str])] = &[
        (EInvoiceProfile::En16931, none, &[]),
        (EInvoiceProfile::Xrechnung, none, &[]),
        (EInvoiceProfile::Peppol, none, &[]),
        (EInvoiceProfile::FacturX, none, &[]),
        (EInvoiceProfile::En16931, (|_| {}, |seller| seller.address = None), &["/entity/address/country_code BT-40, BR-09"]),
        (
            EInvoiceProfile::En16931,
            (|buyer| buyer.billing_address = Some(Address { country_code: None, ..address("FR") }), |_| {}),
            &["/customer/address/country_code BT-55, BR-11"],
        ),
        (EInvoiceProfile::En16931, (|_| {}, |seller| seller.legal.vat_id = None), &["/entity/vat_id BT-31, BR-S-02"]),
        (
            EInvoiceProfile::En16931,
            (
                |_| {},
                |seller| {
                    seller.legal.vat_id = None;
                    seller.tax_id = Some(line("60/123/45678"));
                },
            ),
            &["/entity/registration BT-30, BR-CO-26"],
        ),
        (
            EInvoiceProfile::Xrechnung,
            (
                |buyer| {
                    buyer.billing_address = Some(Address { city: None, zip_code: None, ..address("DE") });
                    buyer.legal.electronic_address = None;
                    buyer.buyer_reference = None;
                },
                |seller| {
                    seller.paper.contact = Some(Contact { name: None, phone: Some(line("1a")), email: Some(line("a@b")) });
                    seller.address = Some(Address { city: None, zip_code: Some(prose(" ")), ..address("DE") });
                    seller.legal.electronic_address = None;
                    seller.payment.online = None;
                },
            ),
            &[
                "/entity/electronic_address BT-34, PEPPOL-EN16931-R020",
                "/customer/electronic_address BT-49, PEPPOL-EN16931-R010",
                "/entity/contact/name BT-41, BR-DE-5",
                "/entity/contact/phone BT-42, BR-DE-27",
                "/entity/contact/email BT-43, BR-DE-28",
                "/entity/address/city BT-37, BR-DE-3",
                "/entity/address/zip_code BT-38, BR-DE-4",
                "/customer/address/city BT-52, BR-DE-8",
                "/customer/address/zip_code BT-53, BR-DE-9",
                "/buyer_reference BT-10, BR-DE-15",
                "/bank_account BG-16, BR-DE-1",
            ],
        ),
        (
            EInvoiceProfile::Xrechnung,
            (|_| {}, |seller| seller.paper.contact = None),
            &[
                "/entity/contact/name BT-41, BR-DE-5",
                "/entity/contact/phone BT-42, BR-DE-6",
                "/entity/contact/email BT-43, BR-DE-7",
            ],
        ),
        (
            EInvoiceProfile::Peppol,
            (
                |buyer| {
                    buyer.legal.electronic_address = None;
                    buyer.buyer_reference = None;
                },
                |seller| seller.legal.electronic_address = None,
            ),
            &[
                "/entity/electronic_address BT-34, PEPPOL-EN16931-R020",
                "/customer/electronic_address BT-49, PEPPOL-EN16931-R010",
                "/buyer_reference BT-10, PEPPOL-EN16931-R003",
            ],
        ),
    ];
    for (profile, (of_buyer, of_seller), expected) in rows {
        let (profile, of_buyer, of_seller) = (*profile, *of_buyer, *of_seller);
        let with_profile = move |buyer: &mut CustomerProfile| {
            of_buyer(buyer);
            buyer.e_invoice_profile = Some(profile);
        };
        let bill = changed(with_profile, of_seller).contract(plan().tax("19")).until("2026-02-05").expect("a simulation");
        assert_eq!(lacks(&bill, "UB-INV-1"), *expected, "{profile:?}");

        // The check of the parties names the same terms.
        let (mut customer, mut entity) = (fixtures::customer(&CountingIds::new(), "acme"), fixtures::entity("main"));
        buyer(&mut customer.profile);
        with_profile(&mut customer.profile);
        seller(&mut entity.profile);
        of_seller(&mut entity.profile);
        let found = missing_of_parties(&customer, &entity, None, fixtures::date("2026-02-05"));
        let found: Vec<String> = found.iter().map(|missing| format!("{} {}", missing.pointer, missing.detail)).collect();
        assert_eq!(found, *expected, "{profile:?}");
    }
}

#[test]
fn reverse_charge_requires_the_numbers_of_both_parties() {
    let bill = |of_buyer: fn(&mut CustomerProfile), of_seller: fn(&mut EntityProfile)| {
        let product = plan().tax("0").tax_category(TaxCategory::Ae, Some("Reverse charge"));
        changed(of_buyer, of_seller).contract(product).until("2026-02-05").expect("a simulation")
    };
    let whole = bill(|_| {}, |_| {});
    assert_eq!(taxes(&written(whole.document("UB-INV-1"))), ["AE 49.00 0.00"]);
    let neither = bill(|buyer| buyer.legal.vat_id = None, |seller| seller.legal.vat_id = None);
    assert_eq!(lacks(&neither, "UB-INV-1"), ["/entity/vat_id BT-31, BR-AE-02", "/customer/vat_id BT-48, BR-AE-02"]);
    let without_category = complete().contract(plan().tax("0")).until("2026-02-05").expect("a simulation");
    assert_eq!(lacks(&without_category, "UB-INV-1"), ["/taxes/0/tax_category BT-151, BR-CO-04"]);
}

#[test]
fn a_document_that_the_standard_cannot_express_says_so() {
    let reason = |bill: &Bill| match bill.document("UB-INV-1").e_invoice() {
        Some(Err(EInvoiceError::Unavailable(reason))) => reason,
        other => panic!("{other:?}"),
    };
    let bill = |terms: Terms| complete().contract(terms).until("2026-02-05").expect("a simulation");
    let dinars = bill(terms("2026-01-01", "2026-12-31").currency("KWD").fixed("fee", "49.000").tax("5"));
    assert!(reason(&dinars).contains("BR-DEC"), "{}", reason(&dinars));
    let yen = bill(terms("2026-01-01", "2026-12-31").currency("JPY").fixed("fee", "1000").tax("10"));
    assert_eq!(sums(&written(yen.document("UB-INV-1"))), ["1000", "0", "1000", "100", "1100"]);
    // The standard rounds the rate to 0 %: it accepts 8 cents, and 4.00 is not 0.
    let fee = |fee: &'static str, tax: &'static str| bill(terms("2026-01-01", "2026-12-31").fixed("fee", fee).tax(tax));
    assert_eq!(taxes(&written(fee("33.33", "0.25").document("UB-INV-1"))), ["S 33.33 0.08"]);
    let low = reason(&fee("1000.00", "0.4"));
    assert!(low.contains("BR-CO-17") && low.contains("4.00 EUR at 0.4 %") && low.contains("0.50 or more"), "{low}");
    let none = changed(|buyer| buyer.e_invoice_profile = Some(EInvoiceProfile::None), |_| {});
    let none = none.contract(plan().tax("19")).until("2026-02-05").expect("a simulation");
    assert!(reason(&none).contains("NONE"), "{}", reason(&none));
}

/// France requires whether a document bills services, goods or both, and whether it is paid when it is issued.
#[test]
fn a_french_seller_states_what_is_billed_and_whether_it_is_paid() {
    let sold_in = |country: &'static str, profile: EInvoiceProfile| {
        changed(
            move |buyer| {
                buyer.e_invoice_profile = Some(profile);
                buyer.buyer_reference = BuyerReference::parse("1").ok();
            },
            move |seller| seller.address = Some(address(country)),
        )
    };
    let french = || sold_in("FR", EInvoiceProfile::En16931);
    let year = || terms("2026-01-01", "2026-12-31").tax("20");
    let goods = || year().fixed("router", flat("49").goods());
    let stated = |simulation: Simulation, number: &str| {
        let terms = written(simulation.until("2026-03-05").expect("a simulation").document(number));
        (terms.process.unwrap_or("-"), terms.due_date.map(|date| date.to_string()).unwrap_or_default())
    };
    let shown = |process, due: &str| (process, due.to_owned());
    let february = |process| shown(process, "2026-02-01");
    assert_eq!(stated(french().contract(year().fixed("fee", "49")), "UB-INV-1"), february("S1"));
    assert_eq!(stated(french().contract(goods()), "UB-INV-1"), february("B1"));
    assert_eq!(stated(french().contract(goods().fixed("fee", "49")), "UB-INV-1"), february("M1"));
    let with_charge = |of_goods: bool| {
        let of_charge = charge("cable", "2026-01-20", "5");
        let of_charge = if of_goods { of_charge.goods() } else { of_charge };
        french().contract(goods()).on("2026-01-20").charge(of_charge)
    };
    assert_eq!(stated(with_charge(true), "UB-INV-1"), february("B1"));
    assert_eq!(stated(with_charge(false), "UB-INV-1"), february("M1"));
    // A credit is paid by the seller, whatever was settled.
    let credited =
        french().contract(goods()).on("2026-02-10").charge(charge("back", "2026-01-20", "-49").goods().issued_at_once());
    assert_eq!(stated(credited, "UB-CRD-1"), shown("B1", ""));
    // The surplus of January's payment pays February's document: 58.80 each.
    let paid = french().contract(goods()).on("2026-02-10").overpay("UB-INV-1", "200");
    assert_eq!(stated(paid.clone(), "UB-INV-1"), february("B1"), "a later payment changes nothing");
    assert_eq!(stated(paid, "UB-INV-2"), shown("B2", "2026-03-01"));
    // Only the profiles of the standard itself have the French codes, and only French sellers state them.
    assert_eq!(stated(sold_in("FR", EInvoiceProfile::FacturX).contract(goods()), "UB-INV-1"), february("B1"));
    let peppol = "urn:fdc:peppol.eu:2017:poacc:billing:01:1.0";
    assert_eq!(stated(sold_in("FR", EInvoiceProfile::Peppol).contract(goods()), "UB-INV-1"), february(peppol));
    assert_eq!(stated(sold_in("DE", EInvoiceProfile::En16931).contract(goods()), "UB-INV-1"), february("-"));
}

/// 60.5 × 0.5 is 30.25, which is 30 in a currency without decimals. A quantity and a price beside the amount must give it within 0.02
/// (PEPPOL-EN16931-R120).
#[test]
fn a_quantity_and_a_price_are_shown_where_their_product_is_near_the_amount() {
    let line = |currency: &str, quantity: &str, price: &str| {
        let terms = terms("2026-01-01", "2026-01-31").currency(currency).usage("calls", per_unit(price)).tax("19");
        let bill = complete().contract(terms).event("2026-01-20", "calls", quantity).until("2026-02-05").expect("a simulation");
        let line = written(bill.document("UB-INV-1")).lines.remove(0);
        (line.quantity.to_string(), line.unit_price.to_string(), line.description.unwrap_or_default())
    };
    let shown = |quantity: &str, price: &str, text: &str| (quantity.to_owned(), price.to_owned(), text.to_owned());
    for currency in ["ISK", "JPY"] {
        assert_eq!(line(currency, "60.5", "0.5"), shown("1", "30", "60.5: 60.5 × 0.5"));
        assert_eq!(line(currency, "60", "0.5"), shown("60", "0.5", ""));
        assert_eq!(line(currency, "60.02", "1"), shown("60.02", "1", ""), "0.02 is near");
    }
    assert_eq!(line("EUR", "12345", "0.0025"), shown("12345", "0.0025", ""));
    assert_eq!(line("EUR", "900000000.123456789", "0.083333333333").0, "900000000.123456789");
}

#[test]
fn a_required_e_invoice_that_lacks_a_term_leaves_the_document_a_draft() {
    let bill = |of_seller: fn(&mut EntityProfile)| {
        let parties = changed(|buyer| buyer.legal.electronic_address = None, of_seller);
        parties.contract(plan().tax("19")).until("2026-02-05").expect("a simulation")
    };
    let waits = bill(|seller| seller.paper.e_invoice = EInvoiceSettings { profile: EInvoiceProfile::Peppol, required: true });
    let codes: Vec<_> = waits.failures().iter().map(|failure| failure.refusal.conflict_code()).collect();
    assert_eq!(codes, [Some("e_invoice_incomplete")]);
    assert!(waits.failures()[0].refusal.to_string().contains("/customer/electronic_address (BT-49, PEPPOL-EN16931-R010)"));
    let issued = bill(|seller| seller.paper.e_invoice = EInvoiceSettings { profile: EInvoiceProfile::En16931, required: true });
    assert_eq!((issued.failures().len(), issued.document("UB-INV-1").e_invoice().map(|terms| terms.is_ok())), (0, Some(true)));
}

#[test]
fn a_profile_has_its_syntaxes() {
    use EInvoiceProfile::{En16931, FacturX, None, Peppol, Xrechnung};
    let syntaxes = |profile: EInvoiceProfile| (profile.allows(Syntax::Ubl), profile.allows(Syntax::Cii));
    let rows = [
        (None, (false, false)),
        (En16931, (true, true)),
        (Xrechnung, (true, true)),
        (Peppol, (true, false)),
        (FacturX, (false, true)),
    ];
    for (profile, expected) in rows {
        assert_eq!(syntaxes(profile), expected, "{profile:?}");
        assert!(profile == None || profile.allows(profile.default_syntax()), "{profile:?}");
    }
}

#[test]
fn prepaid_credit_is_an_allowance_that_names_the_invoice_of_its_sale() {
    let sale = terms("2026-01-01", "2026-01-01").pricing("credit").fixed("credit", "30.00").tax(20);
    let sale = sale.payment_time(PaymentTime::BeforeUse).billing_cycle(CycleUnit::OneTime, 1);
    let story = complete().contract(plan().tax(20).discount(10)).contract(sale).created("2026-01-01");
    let story =
        story.on("2026-01-02").pay("UB-INV-1", "36.00").on("2026-01-02").grant(credit("Credit", "30.00").sold_by("UB-INV-1"));
    let story = story.on("2026-01-02").grant(credit("Gift", "5.00"));
    let bill = story.until("2026-02-05").expect("a bill");
    let document = written(bill.document("UB-INV-2"));
    // 49.00 less a discount of 4.90, a gift of 5.00 and credit of 30.00.
    assert_eq!(sums(&document), ["49.00", "39.90", "9.10", "1.82", "10.92"]);
    let shown = |allowance: &Allowance| (amount(allowance.amount), allowance.reason.clone().unwrap_or_default());
    let allowances: Vec<(String, String)> = document.allowances.iter().map(shown).collect();
    let expected = [("4.90", ""), ("5.00", "Gift"), ("30.00", "Credit, UB-INV-1")];
    assert_eq!(allowances, expected.map(|(amount, reason)| (amount.to_owned(), reason.to_owned())));
}
