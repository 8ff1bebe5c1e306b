//! Entities, customers, usage products and pricings.

use billing_domain::calendar::Timestamp;
use billing_domain::catalog::{Aggregation, FixedPrice, LineItem, LineItemPrice, Pricing, UsageProduct};
use billing_domain::party::legal::EInvoiceProfile;
use billing_domain::party::{
    BankTransferDetails, CryptoDetails, Customer, Entity, EntityUse, NetTerms, OnlinePaymentDetails, PaymentDetails,
};
use billing_domain::ports::{Insertion, Store, StoreError, Update};
use billing_domain::receivables::AccountKey;

use super::{all, contended, done, later, page, read, transact_answer, updated, world, write};
use crate::fixtures::{self, price, quantity};
use crate::{FreshIds, suite::World};

fn full_entity() -> Entity {
    let mut entity = fixtures::entity("full");
    entity.profile = billing_domain::party::EntityProfile {
        name: fixtures::line("Full & Söhne"),
        legal_name: Some(fixtures::line("Full & Söhne GmbH")),
        time_zone: fixtures::zone("Pacific/Kiritimati"),
        currency: Some(fixtures::currency("JPY")),
        address: Some(fixtures::full_address()),
        tax_id: Some(fixtures::line("DE123")),
        net_terms: Some(NetTerms::Days(3650)),
        grace_hours: 720,
        payment: fixtures::full_payment(),
        legal: fixtures::full_legal("DE123456789"),
        taxes: fixtures::dated_taxes(None),
        paper: fixtures::full_paper(),
        credit_unit: fixtures::credit_unit("KWD", "0.0010"),
        ..entity.profile
    };
    entity
}

fn full_customer() -> Customer {
    let mut customer = fixtures::customer(&FreshIds, "full:1_2.3-4");
    customer.profile = billing_domain::party::CustomerProfile {
        name: fixtures::line("Full"),
        legal_name: Some(fixtures::line("Full Ltd")),
        email: Some(fixtures::line("a@b.example")),
        tax_id: Some(fixtures::line("GB 1")),
        billing_address: Some(fixtures::full_address()),
        currency: Some(fixtures::currency("KWD")),
        taxes: fixtures::dated_taxes(Some("7.123450")),
        entity_ref: Some(fixtures::entity_ref("main")),
        net_terms: Some(NetTerms::DueUponUsage),
        payment: fixtures::full_payment(),
        apply_balance: false,
        legal: fixtures::full_legal("FR40303265045"),
        buyer_reference: Some(fixtures::buyer_reference("Kostenstelle 47/11 – ä")),
        e_invoice_profile: Some(EInvoiceProfile::FacturX),
        metadata: fixtures::metadata(&[("stripe", "cus_1"), ("ä ✓", "")]),
    };
    customer
}

fn full_pricing() -> Pricing {
    let charged = fixtures::with_charge(fixtures::per_unit("calls", "0.0025"), |charge| {
        charge.included_quantity = quantity("1000");
        charge.prepaid_quantity = Some(quantity("2000.5"));
        charge.minimum_amount = Some(price("1.50"));
        charge.maximum_amount = Some(price("99.999"));
    });
    // More than ten items reveal an order by text.
    let many = (0..12).map(|n| fixtures::fixed(&format!("item-{n}"), "1"));
    let items = [charged, fixtures::once("setup", "49.00")].into_iter().chain(many);
    let mut pricing = fixtures::pricing("full", items.collect());
    pricing.content.minimum_fee = Some(price("12.345678901234"));
    pricing.content.currency = fixtures::currency("KWD");
    pricing
}

fn full_product() -> UsageProduct {
    let mut product = fixtures::usage_product("full");
    product.profile.unit = Some(fixtures::line("GB·h"));
    product.profile.unit_code = "E34".parse().expect("a unit");
    product.profile.aggregation = Aggregation::Latest;
    product
}

pub fn everything_of_the_catalog_comes_back_with_every_field(store: &dyn Store) {
    let w = world(store);
    store_and_compare(store, &w, &full_entity(), &full_customer(), &full_product(), &full_pricing());
}

pub fn everything_of_the_catalog_comes_back_without_optional_fields(store: &dyn Store) {
    let w = world(store);
    let mut hollow = fixtures::customer(&FreshIds, "hollow");
    hollow.profile.billing_address = Some(billing_domain::party::Address::default());
    hollow.profile.taxes = fixtures::default_tax("0");
    hollow.profile.net_terms = Some(NetTerms::DueUponReceipt);
    // Empty details differ from missing details.
    hollow.profile.payment = PaymentDetails {
        bank_transfer: Some(BankTransferDetails::default()),
        online: Some(OnlinePaymentDetails::default()),
        crypto: Some(CryptoDetails::default()),
    };
    store_and_compare(
        store,
        &w,
        &fixtures::entity("empty"),
        &hollow,
        &fixtures::usage_product("empty"),
        &fixtures::pricing("empty", vec![]),
    );
    let plain = fixtures::customer(&FreshIds, "plain");
    write(store, |tx| done(tx.insert_customer(w.org, &plain)));
    assert_eq!(read(store, |tx| tx.customers_by_ids(w.org, &[plain.id])), [plain]);
}

fn store_and_compare(
    store: &dyn Store,
    w: &World,
    entity: &Entity,
    customer: &Customer,
    product: &UsageProduct,
    pricing: &Pricing,
) {
    write(store, |tx| {
        done(tx.insert_entity(w.org, entity))?;
        done(tx.insert_customer(w.org, customer))?;
        done(tx.insert_usage_product(w.org, product))?;
        done(tx.insert_pricing(w.org, pricing))
    });
    read(store, |tx| {
        assert_eq!(tx.entities_by_refs(w.org, std::slice::from_ref(&entity.entity_ref))?, std::slice::from_ref(entity));
        assert_eq!(tx.customers_by_refs(w.org, std::slice::from_ref(&customer.customer_ref))?, std::slice::from_ref(customer));
        assert_eq!(tx.customers_by_ids(w.org, &[customer.id])?, std::slice::from_ref(customer));
        assert_eq!(tx.customers_by_name(w.org, &customer.profile.name)?, std::slice::from_ref(customer));
        let products = tx.usage_products_by_refs(w.org, std::slice::from_ref(&product.usage_product_ref))?;
        assert_eq!(products, std::slice::from_ref(product));
        assert_eq!(tx.usage_products_by_name(w.org, &product.profile.name)?, std::slice::from_ref(product));
        assert_eq!(tx.pricings_by_refs(w.org, std::slice::from_ref(&pricing.pricing_ref))?, std::slice::from_ref(pricing));
        // The lists contain the objects, too.
        assert!(tx.entities(w.org, all())?.items.contains(entity));
        assert!(tx.customers(w.org, all())?.items.contains(customer));
        assert!(tx.usage_products(w.org, all())?.items.contains(product));
        assert!(tx.pricings(w.org, all())?.items.contains(pricing));
        Ok(())
    });
}

pub fn every_price_model_comes_back_with_its_own_digits(store: &dyn Store) {
    let w = world(store);
    let rows = [(Some("100"), "0.10", "0"), (Some("999999999.000000000001"), "0.050", "5.00"), (None, "0.000000000001", "0.00")];
    let items = vec![
        fixtures::fixed("fixed", "100.00"),
        fixtures::once("once", "0"),
        fixtures::per_unit("per_unit", "999999999.999999999999"),
        fixtures::graduated("graduated", &rows),
        fixtures::volume("volume", &rows),
        fixtures::graduated("open", &[(None, "1.0", "2.50")]),
        fixtures::package("package", "1000.000000001", "5.00"),
        fixtures::percentage("percentage", "1.400000", "0.250"),
        fixtures::percentage("hundred", "100", "0"),
        fixtures::fixed_at("seats", fixtures::usage_price(&fixtures::graduated("calls", &rows))),
        fixtures::fixed_at("packs", fixtures::usage_price(&fixtures::package("calls", "10.0", "5.00"))),
    ];
    let pricing = fixtures::pricing("models", items);
    let products = fixtures::products_of(&pricing);
    write(store, |tx| {
        products.iter().try_for_each(|product| done(tx.insert_usage_product(w.org, product)))?;
        done(tx.insert_pricing(w.org, &pricing))
    });
    let stored = read(store, |tx| tx.pricings_by_refs(w.org, std::slice::from_ref(&pricing.pricing_ref)));
    assert_eq!(stored, std::slice::from_ref(&pricing));
    // Equal decimals may have different digits, so the debug output is compared.
    assert_eq!(format!("{:?}", stored[0]), format!("{pricing:?}"));
    let fixed_amounts: Vec<String> = stored[0].content.line_items.iter().filter_map(shown_amount).collect();
    assert_eq!(fixed_amounts, ["100.00", "0"]);
}

fn shown_amount(item: &LineItem) -> Option<String> {
    match &item.charge {
        LineItemPrice::Fixed { price: FixedPrice::Flat { amount }, .. } => Some(amount.as_decimal().to_string()),
        LineItemPrice::Fixed { price: FixedPrice::Metered(_), .. } | LineItemPrice::Usage(_) => None,
    }
}

pub fn references_are_taken_once_without_ending_the_transaction(store: &dyn Store) {
    let w = world(store);
    write(store, |tx| {
        let mut entity = fixtures::entity("main");
        entity.profile.number_prefix = full_entity().profile.number_prefix;
        assert_eq!(tx.insert_entity(w.org, &entity)?, Insertion::Taken("entity_ref"));
        let mut customer = fixtures::customer(&FreshIds, "acme");
        customer.profile.name = fixtures::line("another");
        assert_eq!(tx.insert_customer(w.org, &customer)?, Insertion::Taken("customer_ref"));
        let mut product = fixtures::usage_product("calls");
        product.profile.name = fixtures::line("another");
        assert_eq!(tx.insert_usage_product(w.org, &product)?, Insertion::Taken("usage_product_ref"));
        let pricing = fixtures::pricing("api", vec![fixtures::fixed("another", "1")]);
        assert_eq!(tx.insert_pricing(w.org, &pricing)?, Insertion::Taken("product_pricing_ref"));
        // References are case-sensitive.
        done(tx.insert_customer(w.org, &fixtures::customer(&FreshIds, "ACME")))
    });
    read(store, |tx| {
        assert_eq!(tx.entities(w.org, all())?.items, std::slice::from_ref(&w.entity));
        assert_eq!(
            tx.customers_by_refs(w.org, std::slice::from_ref(&w.customer.customer_ref))?,
            std::slice::from_ref(&w.customer)
        );
        assert_eq!(tx.usage_products(w.org, all())?.items, std::slice::from_ref(&w.product));
        assert_eq!(tx.pricings(w.org, all())?.items, std::slice::from_ref(&w.pricing));
        assert_eq!(tx.customers(w.org, all())?.total, 2);
        Ok(())
    });
}

pub fn a_number_prefix_is_taken_once_also_by_an_update(store: &dyn Store) {
    let w = world(store);
    let mut second = fixtures::entity("second");
    second.profile.number_prefix = w.entity.profile.number_prefix.clone();
    assert_eq!(write(store, |tx| tx.insert_entity(w.org, &second)), Insertion::Taken("number_prefix"));
    second.profile.number_prefix = fixtures::entity("second").profile.number_prefix;
    write(store, |tx| done(tx.insert_entity(w.org, &second)));
    let mut renamed = second.clone();
    renamed.profile.name = fixtures::line("Renamed");
    renamed.profile.number_prefix = w.entity.profile.number_prefix.clone();
    write(store, |tx| {
        assert_eq!(tx.update_entity(w.org, &renamed)?, Update::Taken("number_prefix"));
        // An entity's own prefix is no conflict, and the transaction continues.
        updated(tx.update_entity(w.org, &w.entity))
    });
    assert_eq!(read(store, |tx| tx.entities_by_refs(w.org, std::slice::from_ref(&second.entity_ref))), [second]);
}

pub fn a_number_prefix_belongs_to_the_entity_whose_documents_have_it(store: &dyn Store) {
    let (w, elsewhere) = (world(store), world(store));
    w.open(store, w.head(1));
    let with_prefix_of = |entity: &Entity, other: &Entity| {
        let mut made = entity.clone();
        made.profile.number_prefix = other.profile.number_prefix.clone();
        made
    };
    let renamed = with_prefix_of(&w.entity, &fixtures::entity("renamed"));
    let second = with_prefix_of(&fixtures::entity("second"), &w.entity);
    // The prefix does not change after the first number. A caller who did not notice the number looks again.
    contended(store, |tx| updated(tx.update_entity(w.org, &renamed)));
    write(store, |tx| {
        assert_eq!(tx.insert_entity(w.org, &second)?, Insertion::Taken("number_prefix"));
        done(tx.insert_entity(w.org, &fixtures::entity("second")))?;
        assert_eq!(tx.update_entity(w.org, &second)?, Update::Taken("number_prefix"));
        Ok(())
    });
    // The prefix is free before the entity's first number, and in every other organization.
    let renamed = with_prefix_of(&elsewhere.entity, &fixtures::entity("renamed"));
    write(store, |tx| {
        updated(tx.update_entity(elsewhere.org, &renamed))?;
        done(tx.insert_entity(elsewhere.org, &second))
    });
}

pub fn an_entity_is_held_as_it_was_read_or_not_at_all(store: &dyn Store) {
    let w = world(store);
    let full = Entity { profile: full_entity().profile, ..w.entity.clone() };
    write(store, |tx| {
        tx.hold_entity(w.org, &w.entity)?;
        updated(tx.update_entity(w.org, &full))
    });
    write(store, |tx| tx.hold_entity(w.org, &full));
    contended(store, |tx| tx.hold_entity(w.org, &w.entity));
    contended(store, |tx| tx.hold_entity(w.org, &fixtures::entity("nobody")));
}

pub fn an_entity_is_deleted_with_its_series_and_words(store: &dyn Store) {
    let w = world(store);
    let spare = fixtures::entity("spare");
    let refs = std::slice::from_ref(&spare.entity_ref);
    write(store, |tx| done(tx.insert_entity(w.org, &spare)));
    write(store, |tx| {
        assert_eq!(tx.lock_entities_shared(w.org, refs)?, std::slice::from_ref(&spare));
        tx.hold_entity(w.org, &spare)?;
        assert_eq!(tx.entity_user(w.org, &spare.entity_ref)?, None);
        tx.delete_entity(w.org, &spare.entity_ref)
    });
    assert_eq!(read(store, |tx| tx.entities_by_refs(w.org, refs)), []);
    contended(store, |tx| tx.lock_entities_shared(w.org, refs).map(drop));
    // Its reference and prefix are free again, and numbers begin anew.
    write(store, |tx| done(tx.insert_entity(w.org, &spare)));
    assert!(!read(store, |tx| tx.has_given_numbers(w.org, &spare.entity_ref)));
    // What names an entity is found.
    assert_eq!(read(store, |tx| tx.entity_user(w.org, &w.entity.entity_ref)), Some(EntityUse::Contract(1)));
    let mut naming = fixtures::customer(&FreshIds, "naming");
    naming.profile.entity_ref = Some(spare.entity_ref.clone());
    write(store, |tx| done(tx.insert_customer(w.org, &naming)));
    let user = EntityUse::Customer(naming.customer_ref);
    assert_eq!(read(store, |tx| tx.entity_user(w.org, &spare.entity_ref)), Some(user));
    let paid = Entity { entity_ref: fixtures::entity_ref("paid"), ..fixtures::entity("paid") };
    write(store, |tx| done(tx.insert_entity(w.org, &paid)));
    assert_eq!(read(store, |tx| tx.entity_user(w.org, &paid.entity_ref)), None);
    let account = AccountKey { customer_id: w.customer.id, entity_ref: paid.entity_ref.clone(), currency: fixtures::eur() };
    write(store, |tx| tx.hold_account(w.org, &account).map(drop));
    let user = EntityUse::Payer(w.customer.customer_ref.clone());
    assert_eq!(read(store, |tx| tx.entity_user(w.org, &paid.entity_ref)), Some(user));
    // An entity with numbers stays.
    w.open(store, w.head(1));
    let answer = transact_answer(store, |tx| tx.delete_entity(w.org, &w.entity.entity_ref));
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
}

pub fn updates_replace_the_profile_and_nothing_else(store: &dyn Store) {
    let w = world(store);
    let entity = Entity { created_at: later(99), profile: full_entity().profile, ..w.entity.clone() };
    let customer = Customer { created_at: later(99), profile: full_customer().profile, ..w.customer.clone() };
    let product = UsageProduct { created_at: later(99), profile: full_product().profile, ..w.product.clone() };
    let pricing = Pricing { created_at: later(99), content: full_pricing().content, ..w.pricing.clone() };
    write(store, |tx| {
        updated(tx.update_entity(w.org, &entity))?;
        updated(tx.update_customer(w.org, &customer))?;
        updated(tx.update_usage_product(w.org, &product))?;
        updated(tx.update_pricing(w.org, &pricing))
    });
    read(store, |tx| {
        assert_eq!(tx.entities(w.org, all())?.items, [Entity { created_at: w.entity.created_at, ..entity.clone() }]);
        assert_eq!(tx.customers(w.org, all())?.items, [Customer { created_at: w.customer.created_at, ..customer.clone() }]);
        assert_eq!(
            tx.usage_products(w.org, all())?.items,
            [UsageProduct { created_at: w.product.created_at, ..product.clone() }]
        );
        assert_eq!(tx.pricings(w.org, all())?.items, [Pricing { created_at: w.pricing.created_at, ..pricing.clone() }]);
        Ok(())
    });
    // Missing fields are cleared, and line items are removed.
    write(store, |tx| {
        updated(tx.update_entity(w.org, &w.entity))?;
        updated(tx.update_customer(w.org, &w.customer))?;
        updated(tx.update_usage_product(w.org, &w.product))?;
        updated(tx.update_pricing(w.org, &w.pricing))
    });
    read(store, |tx| {
        assert_eq!(tx.entities(w.org, all())?.items, std::slice::from_ref(&w.entity));
        assert_eq!(tx.customers(w.org, all())?.items, std::slice::from_ref(&w.customer));
        assert_eq!(tx.usage_products(w.org, all())?.items, std::slice::from_ref(&w.product));
        assert_eq!(tx.pricings(w.org, all())?.items, std::slice::from_ref(&w.pricing));
        Ok(())
    });
}

pub fn an_update_of_what_is_not_there_says_so(store: &dyn Store) {
    let w = world(store);
    write(store, |tx| {
        assert_eq!(tx.update_entity(w.org, &fixtures::entity("nobody"))?, Update::Unknown);
        assert_eq!(tx.update_customer(w.org, &fixtures::customer(&FreshIds, "nobody"))?, Update::Unknown);
        assert_eq!(tx.update_usage_product(w.org, &fixtures::usage_product("nothing"))?, Update::Unknown);
        assert_eq!(tx.update_pricing(w.org, &fixtures::pricing("nothing", vec![]))?, Update::Unknown);
        assert_eq!(tx.entities(w.org, all())?.total, 1);
        assert_eq!(tx.customers(w.org, all())?.total, 1);
        assert_eq!(tx.usage_products(w.org, all())?.total, 1);
        assert_eq!(tx.pricings(w.org, all())?.total, 1);
        Ok(())
    });
}

/// The order of the references distinguishes byte order from alphabetical order. In byte order, capitals come first and `_`
/// comes between capitals and lower-case letters.
const SHUFFLED: [(&str, i64); 6] = [("b", 5), ("a", 5), ("Z", 5), ("_", 5), ("late", 9), ("old", 1)];
const IN_ORDER: [&str; 6] = ["old", "Z", "_", "a", "b", "late"];

fn store_shuffled(store: &dyn Store) -> World {
    let w = world(store);
    write(store, |tx| {
        for (i, (reference, seconds)) in SHUFFLED.into_iter().enumerate() {
            let created_at: Timestamp = later(seconds);
            let mut entity = Entity { created_at, ..fixtures::entity("x") };
            entity.entity_ref = fixtures::entity_ref(reference);
            entity.profile.number_prefix = billing_domain::party::NumberPrefix::parse(&format!("P{i}")).expect("a prefix");
            done(tx.insert_entity(w.org, &entity))?;
            done(tx.insert_customer(w.org, &Customer { created_at, ..fixtures::customer(&FreshIds, reference) }))?;
            done(tx.insert_usage_product(w.org, &UsageProduct { created_at, ..fixtures::usage_product(reference) }))?;
            done(tx.insert_pricing(w.org, &Pricing { created_at, ..fixtures::pricing(reference, vec![]) }))?;
        }
        Ok(())
    });
    w
}

pub fn lists_are_ordered_by_creation_then_by_reference(store: &dyn Store) {
    let w = store_shuffled(store);
    read(store, |tx| {
        let entities = tx.entities(w.org, all())?.items;
        assert_eq!(entities.iter().skip(1).map(|row| row.entity_ref.as_str()).collect::<Vec<_>>(), IN_ORDER);
        let customers = tx.customers(w.org, all())?.items;
        assert_eq!(customers.iter().skip(1).map(|row| row.customer_ref.as_str()).collect::<Vec<_>>(), IN_ORDER);
        let products = tx.usage_products(w.org, all())?.items;
        assert_eq!(products.iter().skip(1).map(|row| row.usage_product_ref.as_str()).collect::<Vec<_>>(), IN_ORDER);
        let pricings = tx.pricings(w.org, all())?.items;
        assert_eq!(pricings.iter().skip(1).map(|row| row.pricing_ref.as_str()).collect::<Vec<_>>(), IN_ORDER);
        Ok(())
    });
}

pub fn lists_come_in_pages_with_the_total(store: &dyn Store) {
    let w = store_shuffled(store);
    read(store, |tx| {
        // With the object of the world, there are seven. The pages have three, three, one and no elements.
        let mut seen = (vec![], vec![], vec![], vec![]);
        for (number, len) in [(0, 3), (1, 3), (2, 1), (3, 0)] {
            let (entities, customers) = (tx.entities(w.org, page(3, number))?, tx.customers(w.org, page(3, number))?);
            let (products, pricings) = (tx.usage_products(w.org, page(3, number))?, tx.pricings(w.org, page(3, number))?);
            let lens = [entities.items.len(), customers.items.len(), products.items.len(), pricings.items.len()];
            assert_eq!(lens, [len; 4], "page {number}");
            assert_eq!([entities.total, customers.total, products.total, pricings.total], [7; 4], "page {number}");
            seen.0.extend(entities.items);
            seen.1.extend(customers.items);
            seen.2.extend(products.items);
            seen.3.extend(pricings.items);
        }
        assert_eq!(seen.0, tx.entities(w.org, all())?.items);
        assert_eq!(seen.1, tx.customers(w.org, all())?.items);
        assert_eq!(seen.2, tx.usage_products(w.org, all())?.items);
        assert_eq!(seen.3, tx.pricings(w.org, all())?.items);
        Ok(())
    });
}

pub fn lists_by_references_leave_out_what_is_not_there(store: &dyn Store) {
    let w = world(store);
    let unknown = fixtures::customer(&FreshIds, "unknown");
    read(store, |tx| {
        let entities = tx.entities_by_refs(w.org, &[fixtures::entity_ref("unknown"), w.entity.entity_ref.clone()])?;
        assert_eq!(entities, std::slice::from_ref(&w.entity));
        let customers = tx.customers_by_refs(w.org, &[w.customer.customer_ref.clone(), unknown.customer_ref.clone()])?;
        assert_eq!(customers, std::slice::from_ref(&w.customer));
        let customers = tx.customers_by_ids(w.org, &[unknown.id, w.customer.id])?;
        assert_eq!(customers, std::slice::from_ref(&w.customer));
        let products =
            tx.usage_products_by_refs(w.org, &[fixtures::usage_product_ref("unknown"), w.product.usage_product_ref.clone()])?;
        assert_eq!(products, std::slice::from_ref(&w.product));
        let pricings = tx.pricings_by_refs(w.org, &[w.pricing.pricing_ref.clone(), fixtures::pricing_ref("unknown")])?;
        assert_eq!(pricings, std::slice::from_ref(&w.pricing));
        assert_eq!(tx.entities_by_refs(w.org, &[])?, []);
        assert_eq!(tx.customers_by_refs(w.org, &[])?, []);
        assert_eq!(tx.customers_by_ids(w.org, &[])?, []);
        assert_eq!(tx.usage_products_by_refs(w.org, &[])?, []);
        assert_eq!(tx.pricings_by_refs(w.org, &[])?, []);
        Ok(())
    });
}

pub fn at_most_two_namesakes_are_answered(store: &dyn Store) {
    let w = world(store);
    let name = fixtures::line("Namesake");
    for (n, expected) in [(1, 1), (2, 2), (3, 2)] {
        let mut customer = fixtures::customer(&FreshIds, &format!("customer-{n}"));
        customer.profile.name = name.clone();
        let mut product = fixtures::usage_product(&format!("product-{n}"));
        product.profile.name = name.clone();
        write(store, |tx| {
            done(tx.insert_customer(w.org, &customer))?;
            done(tx.insert_usage_product(w.org, &product))
        });
        read(store, |tx| {
            let customers = tx.customers_by_name(w.org, &name)?;
            assert_eq!((customers.len(), customers.iter().all(|row| row.profile.name == name)), (expected, true));
            let products = tx.usage_products_by_name(w.org, &name)?;
            assert_eq!((products.len(), products.iter().all(|row| row.profile.name == name)), (expected, true));
            Ok(())
        });
    }
    read(store, |tx| {
        assert_eq!(tx.customers_by_name(w.org, &fixtures::line("namesake"))?, [], "names differ by case");
        assert_eq!(tx.usage_products_by_name(w.org, &fixtures::line("Name%"))?, []);
        Ok(())
    });
}
