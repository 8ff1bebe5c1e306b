//! Customers, entities and charges of a simulation (billing rules 5, 7, 10).

use chrono::NaiveDate;

use super::value::{Given, Recipe};
use crate::calendar::{TimeZone, Timestamp};
use crate::charge::{ChargeEdit, NewCharge};
use crate::document::lines::BillWith;
use crate::money::{Percentage, SignedPrice};
use crate::party::{Customer, CustomerProfile, Entity, EntityProfile, NetTerms, NumberPrefix};
use crate::quantity::Quantity;
use crate::refs::{ChargeRef, EntityRef, PricingRef};
use crate::refusal::Refusal;
use crate::tax::{DefaultTaxes, StatedTax, TaxBasis, TaxCategory};
use crate::text::OneLine;

/// A default tax with its first day. Without a day, the tax is in force from the day on which it is set. If no default
/// was in force before, it is in force from the beginning.
#[derive(Clone, Debug)]
pub struct DefaultTax {
    rate: Given<Percentage>,
    basis: Option<(TaxCategory, Option<Given<OneLine>>)>,
    from: Option<Given<NaiveDate>>,
}

/// Returns a default tax in percent.
pub fn default_tax(rate: impl Into<Given<Percentage>>) -> DefaultTax {
    DefaultTax { rate: rate.into(), basis: None, from: None }
}

impl DefaultTax {
    /// Sets the tax category at a rate of 0, with the reason as text if the category needs one.
    #[must_use]
    pub fn category(mut self, category: TaxCategory, reason: Option<&str>) -> Self {
        self.basis = Some((category, reason.map(Given::from)));
        self
    }

    /// Sets the first day on which the tax is in force.
    #[must_use]
    pub fn from_day(mut self, day: impl Into<Given<NaiveDate>>) -> Self {
        self.from = Some(day.into());
        self
    }

    fn put(&self, taxes: &mut DefaultTaxes, today: NaiveDate) -> Result<(), Refusal> {
        let mut basis = TaxBasis::default();
        if let Some((category, reason)) = &self.basis {
            basis.category = Some(*category);
            basis.exemption_reason = reason.as_ref().map(|reason| reason.read("tax_exemption_reason")).transpose()?;
        }
        let stated = StatedTax { rate: Some(self.rate.read("tax")?), basis };
        let from = self.from.as_ref().map(|day| day.read("tax_from")).transpose()?;
        *taxes = taxes.with(stated, from, today);
        Ok(taxes.check()?)
    }
}

impl<T: Into<Given<Percentage>>> From<T> for DefaultTax {
    fn from(rate: T) -> Self {
        default_tax(rate)
    }
}

/// Default taxes are dated, so a change needs the day on which it is made.
pub(super) struct Dated<T> {
    pub(super) profile: T,
    pub(super) today: NaiveDate,
}

/// A change of the customer.
#[derive(Clone, Debug)]
pub struct CustomerChange(Recipe<Dated<CustomerProfile>>);

/// Returns an empty change of the customer.
pub fn customer() -> CustomerChange {
    CustomerChange(Recipe::new())
}

impl CustomerChange {
    /// Sets the default tax of the customer's products.
    #[must_use]
    pub fn tax(mut self, tax: impl Into<DefaultTax>) -> Self {
        let tax = tax.into();
        self.0.add(move |to| tax.put(&mut to.profile.taxes, to.today));
        self
    }

    /// Sets the default net terms of the customer's products.
    #[must_use]
    pub fn net_terms(self, net_terms: NetTerms) -> Self {
        self.with(move |profile| profile.net_terms = Some(net_terms))
    }

    /// Leaves balance unapplied until it is applied manually (billing rules 9).
    #[must_use]
    pub fn keep_balance(self) -> Self {
        self.with(|profile| profile.apply_balance = false)
    }

    /// Sets the name.
    #[must_use]
    pub fn name(mut self, name: impl Into<Given<OneLine>>) -> Self {
        let name = name.into();
        self.0.add(move |to| {
            to.profile.name = name.read("name")?;
            Ok(())
        });
        self
    }

    /// Changes any other field with typed values.
    #[must_use]
    pub fn with(mut self, change: impl Fn(&mut CustomerProfile) + Send + Sync + 'static) -> Self {
        self.0.add(move |to| {
            change(&mut to.profile);
            Ok(())
        });
        self
    }

    pub(super) fn apply(&self, customer: &mut Customer, today: NaiveDate) -> Result<(), Refusal> {
        let mut changed = Dated { profile: customer.profile.clone(), today };
        self.0.apply(&mut changed)?;
        customer.profile = changed.profile;
        Ok(())
    }
}

/// A change of an entity.
#[derive(Clone, Debug)]
pub struct EntityChange {
    reference: Given<EntityRef>,
    recipe: Recipe<Dated<EntityProfile>>,
}

/// Returns an empty change of an entity. The first entity of a simulation is `default`, with the number prefix `UB`, in
/// UTC, with a grace of 2 hours.
pub fn entity(reference: impl Into<Given<EntityRef>>) -> EntityChange {
    EntityChange { reference: reference.into(), recipe: Recipe::new() }
}

impl EntityChange {
    /// Sets the prefix of the document numbers.
    #[must_use]
    pub fn prefix(self, prefix: &str) -> Self {
        let prefix = prefix.to_owned();
        self.change(move |to| {
            to.profile.number_prefix = number_prefix(&prefix)?;
            Ok(())
        })
    }

    /// Sets the time zone of the period boundaries: `Europe/Berlin`.
    #[must_use]
    pub fn time_zone(self, zone: impl Into<Given<TimeZone>>) -> Self {
        let zone = zone.into();
        self.change(move |to| {
            to.profile.time_zone = zone.read("timezone")?;
            Ok(())
        })
    }

    /// Sets the hours between a document's natural day and its issue, 0 to 720.
    #[must_use]
    pub fn grace_hours(self, hours: u16) -> Self {
        self.with(move |profile| profile.grace_hours = hours)
    }

    /// Sets the default tax of the entity's products.
    #[must_use]
    pub fn tax(self, tax: impl Into<DefaultTax>) -> Self {
        let tax = tax.into();
        self.change(move |to| tax.put(&mut to.profile.taxes, to.today))
    }

    /// Sets the default net terms of the entity's products.
    #[must_use]
    pub fn net_terms(self, net_terms: NetTerms) -> Self {
        self.with(move |profile| profile.net_terms = Some(net_terms))
    }

    /// Changes any other field with typed values.
    #[must_use]
    pub fn with(self, change: impl Fn(&mut EntityProfile) + Send + Sync + 'static) -> Self {
        self.change(move |to| {
            change(&mut to.profile);
            Ok(())
        })
    }

    fn change(mut self, change: impl Fn(&mut Dated<EntityProfile>) -> Result<(), Refusal> + Send + Sync + 'static) -> Self {
        self.recipe.add(change);
        self
    }

    pub(super) fn reference(&self) -> Result<EntityRef, Refusal> {
        self.reference.read("entity_ref")
    }

    pub(super) fn apply(&self, entity: &mut Entity, today: NaiveDate) -> Result<(), Refusal> {
        let mut changed = Dated { profile: entity.profile.clone(), today };
        self.recipe.apply(&mut changed)?;
        entity.profile = changed.profile;
        Ok(())
    }
}

/// Returns an entity in UTC with the default grace.
pub(super) fn plain_entity(entity_ref: EntityRef, prefix: &str) -> Result<Entity, Refusal> {
    let name = Given::<OneLine>::from(entity_ref.as_str()).read("name")?;
    let profile = EntityProfile::plain(name, number_prefix(prefix)?);
    Ok(Entity { profile, entity_ref, created_at: Timestamp::MIN, updated_at: Timestamp::MIN })
}

fn number_prefix(text: &str) -> Result<NumberPrefix, Refusal> {
    NumberPrefix::parse(text).map_err(|error| Refusal::field(&["number_prefix"], "invalid_format", error.to_string()))
}

/// A charge: a one-off amount with a date. A negative amount gives money back (billing rules 5).
#[derive(Clone, Debug)]
pub struct ChargeTerms {
    reference: Given<ChargeRef>,
    date: Given<NaiveDate>,
    unit_price: Given<SignedPrice>,
    quantity: Given<Quantity>,
    pricing: Option<Given<PricingRef>>,
    bill_with: BillWith,
    discountable: bool,
    goods: bool,
    pub(super) issue: bool,
}

/// Returns a charge of one unit. It is billed with the usage of the period that contains the date.
pub fn charge(
    reference: impl Into<Given<ChargeRef>>,
    date: impl Into<Given<NaiveDate>>,
    unit_price: impl Into<Given<SignedPrice>>,
) -> ChargeTerms {
    ChargeTerms {
        reference: reference.into(),
        date: date.into(),
        unit_price: unit_price.into(),
        quantity: Given::Value(Quantity::ONE),
        pricing: None,
        bill_with: BillWith::Usage,
        discountable: false,
        goods: false,
        issue: false,
    }
}

impl ChargeTerms {
    /// Sets the quantity.
    #[must_use]
    pub fn quantity(mut self, quantity: impl Into<Given<Quantity>>) -> Self {
        self.quantity = quantity.into();
        self
    }

    /// Selects the product by its pricing, if several products bill the day.
    #[must_use]
    pub fn pricing(mut self, reference: impl Into<Given<PricingRef>>) -> Self {
        self.pricing = Some(reference.into());
        self
    }

    /// Bills the charge with the fixed items of its period.
    #[must_use]
    pub const fn with_fixed_items(mut self) -> Self {
        self.bill_with = BillWith::Fixed;
        self
    }

    /// Applies the product's discount to the charge.
    #[must_use]
    pub const fn discountable(mut self) -> Self {
        self.discountable = true;
        self
    }

    /// Makes the charge one for a good instead of a service.
    #[must_use]
    pub const fn goods(mut self) -> Self {
        self.goods = true;
        self
    }

    /// Immediately issues the document that corrects an issued document.
    #[must_use]
    pub const fn issued_at_once(mut self) -> Self {
        self.issue = true;
        self
    }

    pub(super) fn read(&self) -> Result<NewCharge, Refusal> {
        let charge_ref = self.reference.read("charge_ref")?;
        Ok(NewCharge {
            product_no: None,
            name: Given::<OneLine>::from(charge_ref.as_str()).read("name")?,
            charge_ref: Some(charge_ref),
            product_pricing_ref: self.pricing.as_ref().map(|pricing| pricing.read("product_pricing_ref")).transpose()?,
            date: self.date.read("date")?,
            quantity: self.quantity.read("quantity")?,
            unit_price: self.unit_price.read("unit_price")?,
            unit: None,
            bill_with: self.bill_with,
            discountable: self.discountable,
            goods: self.goods,
            note: None,
            reason: None,
        })
    }
}

/// A change of a charge.
#[derive(Clone, Debug)]
pub struct ChargeChange {
    recipe: Recipe<ChargeEdit>,
    pub(super) issue: bool,
}

impl ChargeChange {
    pub(super) const fn new() -> Self {
        Self { recipe: Recipe::new(), issue: false }
    }

    /// Sets the date of the charge.
    #[must_use]
    pub fn date(mut self, date: impl Into<Given<NaiveDate>>) -> Self {
        let date = date.into();
        self.recipe.add(move |edit| {
            edit.date = Some(date.read("date")?);
            Ok(())
        });
        self
    }

    /// Sets the quantity.
    #[must_use]
    pub fn quantity(mut self, quantity: impl Into<Given<Quantity>>) -> Self {
        let quantity = quantity.into();
        self.recipe.add(move |edit| {
            edit.quantity = Some(quantity.read("quantity")?);
            Ok(())
        });
        self
    }

    /// Sets the unit price.
    #[must_use]
    pub fn unit_price(mut self, price: impl Into<Given<SignedPrice>>) -> Self {
        let price = price.into();
        self.recipe.add(move |edit| {
            edit.unit_price = Some(price.read("unit_price")?);
            Ok(())
        });
        self
    }

    /// Immediately issues the document that corrects an issued document.
    #[must_use]
    pub const fn issued_at_once(mut self) -> Self {
        self.issue = true;
        self
    }

    pub(super) fn read(&self) -> Result<ChargeEdit, Refusal> {
        let mut edit = ChargeEdit::default();
        self.recipe.apply(&mut edit)?;
        Ok(edit)
    }
}
