//! The agreed terms of a product, and elements of edits (billing rules 1, 2, 6, 7).

use chrono::NaiveDate;

use super::price::{PriceList, Prices, owned_condition, pricing};
use super::value::{Given, Recipe};
use crate::contract::amendment::{ProductPatch, TaxTreatmentPatch};
use crate::contract::schedule::{BillingCycle, CycleUnit};
use crate::contract::terms::{PaymentTime, Quantities, QuantityStep, RequestedLineItem, RequestedProduct};
use crate::labels::Where;
use crate::money::{Currency, Percentage, Price};
use crate::party::NetTerms;
use crate::patch::Patch;
use crate::quantity::Quantity;
use crate::refs::{EntityRef, LineItemId, PricingRef};
use crate::refusal::Refusal;
use crate::tax::TaxCategory;
use crate::text::{OneLine, Prose};

/// The terms of one product of a contract. Defaults: billed monthly after use in EUR. [`Simulation::until`] rejects
/// invalid values.
///
/// [`Simulation::until`]: super::Simulation::until
#[derive(Clone, Debug)]
pub struct Terms {
    first: Given<NaiveDate>,
    last: Given<NaiveDate>,
    prices: PriceList,
    is_named: bool,
    recipe: Recipe<RequestedProduct>,
}

/// Returns terms from the first billed day to the last.
pub fn terms(first: impl Into<Given<NaiveDate>>, last: impl Into<Given<NaiveDate>>) -> Terms {
    Terms { first: first.into(), last: last.into(), prices: pricing("pricing"), is_named: false, recipe: Recipe::new() }
}

/// An element of an edit: the changes of a product. Other fields stay unchanged.
#[derive(Clone, Debug)]
pub struct ProductEdit {
    pub(super) reference: Given<PricingRef>,
    pub(super) recipe: Recipe<ProductPatch>,
}

/// Returns an element of an edit that only identifies its product, by its pricing.
pub fn product(pricing: impl Into<Given<PricingRef>>) -> ProductEdit {
    ProductEdit { reference: pricing.into(), recipe: Recipe::new() }
}

/// A line item of the pricing that a contract selects, with its differences from the pricing.
#[derive(Clone, Debug)]
pub struct LineItemTerms {
    id: Given<LineItemId>,
    recipe: Recipe<RequestedLineItem>,
}

/// Returns a line item without differences from the pricing.
pub fn item(id: impl Into<Given<LineItemId>>) -> LineItemTerms {
    LineItemTerms { id: id.into(), recipe: Recipe::new() }
}

impl LineItemTerms {
    /// Sets a price that differs from the pricing.
    #[must_use]
    pub fn price(mut self, price: impl Into<Prices>) -> Self {
        let price = price.into();
        self.recipe.add(move |item| {
            item.price = Patch::Set(price.model()?);
            Ok(())
        });
        self
    }

    /// Restores the price of the pricing.
    #[must_use]
    pub fn listed_price(self) -> Self {
        self.with(|item| item.price = Patch::Clear)
    }

    /// Sets the quantity of a fixed line item from a day on. Days must increase; the quantity is 1 before the first day.
    #[must_use]
    pub fn quantity_from(mut self, from: impl Into<Given<NaiveDate>>, quantity: impl Into<Given<Quantity>>) -> Self {
        let (from, quantity) = (from.into(), quantity.into());
        self.recipe.add(move |item| {
            let steps = item.quantities.take().unwrap_or_default();
            let step = QuantityStep { from: from.read("from")?, quantity: quantity.read("quantity")? };
            item.quantities = Some(Quantities::new([steps.as_slice(), &[step]].concat())?);
            Ok(())
        });
        self
    }

    /// Changes any other field.
    #[must_use]
    pub fn with(mut self, change: impl Fn(&mut RequestedLineItem) + Send + Sync + 'static) -> Self {
        self.recipe.add(move |item| {
            change(item);
            Ok(())
        });
        self
    }

    fn read(&self) -> Result<RequestedLineItem, Refusal> {
        let mut item = RequestedLineItem::plain(self.id.read("line_item_id")?);
        self.recipe.apply(&mut item)?;
        Ok(item)
    }
}

/// Methods shared by terms and elements of edits. `$set` sets a value in its field of `$product`.
macro_rules! agreed_values {
    ($builder:ty, $product:ty, $set:path) => {
        impl $builder {
            /// Sets the tax in percent.
            #[must_use]
            pub fn tax(self, percent: impl Into<Given<Percentage>>) -> Self {
                let percent = percent.into();
                self.change(move |product| {
                    product.tax = $set(percent.read("tax")?);
                    Ok(())
                })
            }

            /// Sets the discount in percent.
            #[must_use]
            pub fn discount(self, percent: impl Into<Given<Percentage>>) -> Self {
                let percent = percent.into();
                self.change(move |product| {
                    product.discount = $set(percent.read("discount")?);
                    Ok(())
                })
            }

            /// Sets the issue time of the documents, relative to the period that they bill (billing rules 2).
            #[must_use]
            pub fn payment_time(self, payment_time: PaymentTime) -> Self {
                self.with(move |product| product.payment_time = $set(payment_time))
            }

            /// Sets the payment period of the customer.
            #[must_use]
            pub fn net_terms(self, net_terms: NetTerms) -> Self {
                self.with(move |product| product.net_terms = $set(net_terms))
            }

            /// Sets the length of the periods as a number of units (billing rules 1).
            #[must_use]
            pub fn billing_cycle(self, unit: CycleUnit, count: u16) -> Self {
                self.change(move |product| {
                    let cycle = BillingCycle::new(unit, count);
                    let refused = || Refusal::field(&["billing_cycle"], "out_of_range", "must be from 1 to 1200 units");
                    product.billing_cycle = $set(cycle.ok_or_else(refused)?);
                    Ok(())
                })
            }

            /// Sets the day of the first invoice. Period boundaries are counted from that day (billing rules 1).
            #[must_use]
            pub fn issue_day(self, day: impl Into<Given<NaiveDate>>) -> Self {
                let day = day.into();
                self.change(move |product| {
                    product.issue_day = $set(day.read("issue_day")?);
                    Ok(())
                })
            }

            /// Sets the billing entity.
            #[must_use]
            pub fn entity(self, reference: impl Into<Given<EntityRef>>) -> Self {
                let reference = reference.into();
                self.change(move |product| {
                    product.entity_ref = $set(reference.read("entity_ref")?);
                    Ok(())
                })
            }

            /// Counts only the events whose labels have one of the values for each key (`where`).
            #[must_use]
            pub fn where_labels(self, condition: &[(&str, &[&str])]) -> Self {
                let condition = owned_condition(condition);
                self.change(move |product| {
                    product.condition = $set(Where::new(condition.clone())?);
                    Ok(())
                })
            }

            /// Sets the name on the documents.
            #[must_use]
            pub fn named(self, name: impl Into<Given<OneLine>>) -> Self {
                let name = name.into();
                self.change(move |product| {
                    product.name = $set(name.read("name")?);
                    Ok(())
                })
            }

            /// Sets the note on the documents.
            #[must_use]
            pub fn note(self, text: impl Into<Given<Prose>>) -> Self {
                let text = text.into();
                self.change(move |product| {
                    product.note = $set(text.read("note")?);
                    Ok(())
                })
            }

            /// Sets a minimum fee of a period that differs from the pricing.
            #[must_use]
            pub fn agreed_minimum_fee(self, amount: impl Into<Given<Price>>) -> Self {
                let amount = amount.into();
                self.change(move |product| {
                    product.minimum_fee = Patch::Set(amount.read("minimum_fee")?);
                    Ok(())
                })
            }

            /// Changes any other field with typed values.
            #[must_use]
            pub fn with(self, change: impl Fn(&mut $product) + Send + Sync + 'static) -> Self {
                self.change(move |product| {
                    change(product);
                    Ok(())
                })
            }

            fn change(mut self, change: impl Fn(&mut $product) -> Result<(), Refusal> + Send + Sync + 'static) -> Self {
                self.recipe.add(change);
                self
            }
        }
    };
}

agreed_values!(Terms, RequestedProduct, Some);
agreed_values!(ProductEdit, ProductPatch, Patch::Set);

impl Terms {
    /// Returns terms from typed values. Their pricing must be one of [`Simulation::pricing`](super::Simulation::pricing).
    pub fn of(request: RequestedProduct) -> Self {
        let named = terms(request.billing_start_date, request.billing_end_date).pricing(request.pricing_ref.clone());
        named.with(move |product| product.clone_from(&request))
    }

    /// Sets the reference of the pricing. Without own line items, it must be one of
    /// [`Simulation::pricing`](super::Simulation::pricing).
    #[must_use]
    pub fn pricing(mut self, reference: impl Into<Given<PricingRef>>) -> Self {
        self.prices.rename(reference.into());
        self.is_named = true;
        self
    }

    /// Adds a line item to the pricing that costs an amount in each period, independent of usage.
    #[must_use]
    pub fn fixed(mut self, id: impl Into<Given<LineItemId>>, price: impl Into<Prices>) -> Self {
        self.prices = self.prices.fixed(id, price);
        self
    }

    /// Adds a line item to the pricing that prices usage.
    #[must_use]
    pub fn usage(mut self, id: impl Into<Given<LineItemId>>, price: Prices) -> Self {
        self.prices = self.prices.usage(id, price);
        self
    }

    /// Sets the minimum fee of a period in the pricing.
    #[must_use]
    pub fn minimum_fee(mut self, amount: impl Into<Given<Price>>) -> Self {
        self.prices = self.prices.minimum_fee(amount);
        self
    }

    /// Sets the pricing's currency.
    #[must_use]
    pub fn currency(mut self, code: impl Into<Given<Currency>>) -> Self {
        self.prices = self.prices.currency(code);
        self
    }

    /// Selects a line item of the pricing. Without this call, all line items are selected.
    #[must_use]
    pub fn line_item(self, item: LineItemTerms) -> Self {
        self.change(move |product| {
            product.line_items.get_or_insert_default().push(item.read()?);
            Ok(())
        })
    }

    /// Sets the tax category at a rate of 0, with the reason as text if the category needs one (billing rules 10).
    #[must_use]
    pub fn tax_category(self, category: TaxCategory, reason: Option<&str>) -> Self {
        let reason = reason.map(Given::<OneLine>::from);
        self.change(move |product| {
            product.treatment.category = Some(category);
            product.treatment.exemption_reason = reason.as_ref().map(|reason| reason.read("tax_exemption_reason")).transpose()?;
            Ok(())
        })
    }

    /// Returns the own price list, or `None` if the terms use one of the simulation's. `no` is the index of the product.
    pub(super) fn own_prices(&self, no: usize) -> Option<PriceList> {
        let mut prices = self.prices.clone();
        if !self.is_named {
            prices.rename(format!("pricing-{no}").into());
        }
        (!self.is_named || !prices.is_empty()).then_some(prices)
    }

    pub(super) fn first_day(&self) -> Result<NaiveDate, Refusal> {
        self.first.read("billing_start_date")
    }

    pub(super) fn request(&self, no: usize) -> Result<RequestedProduct, Refusal> {
        let pricing_ref = self.own_prices(no).unwrap_or_else(|| self.prices.clone()).reference()?;
        let mut request = RequestedProduct::plain(pricing_ref, self.first_day()?, self.last.read("billing_end_date")?);
        self.recipe.apply(&mut request)?;
        Ok(request)
    }

    /// Returns the element of an edit that adds the product.
    pub(super) fn patch(&self, no: usize) -> Result<ProductPatch, Refusal> {
        let request = self.request(no)?;
        let set = Patch::Set;
        let RequestedProduct { payment, treatment, .. } = request;
        Ok(ProductPatch {
            product_no: None,
            billing_start_date: Some(request.billing_start_date),
            billing_end_date: Some(request.billing_end_date),
            reprice: false,
            line_items: request.line_items.map_or(Patch::Keep, set),
            minimum_fee: request.minimum_fee,
            entity_ref: request.entity_ref.map_or(Patch::Keep, Patch::Set),
            billing_cycle: request.billing_cycle.map_or(Patch::Keep, Patch::Set),
            issue_day: request.issue_day.map_or(Patch::Keep, Patch::Set),
            payment_time: request.payment_time.map_or(Patch::Keep, Patch::Set),
            tax: request.tax.map_or(Patch::Keep, Patch::Set),
            discount: request.discount.map_or(Patch::Keep, Patch::Set),
            net_terms: request.net_terms.map_or(Patch::Keep, Patch::Set),
            note: request.note.map_or(Patch::Keep, Patch::Set),
            bank_transfer: payment.bank_transfer.map_or(Patch::Keep, Patch::Set),
            online: payment.online.map_or(Patch::Keep, Patch::Set),
            crypto: payment.crypto.map_or(Patch::Keep, Patch::Set),
            treatment: TaxTreatmentPatch {
                category: treatment.category.map_or(Patch::Keep, Patch::Set),
                exemption_code: treatment.exemption_code.map_or(Patch::Keep, Patch::Set),
                exemption_reason: treatment.exemption_reason.map_or(Patch::Keep, Patch::Set),
            },
            buyer_reference: request.buyer_reference.map_or(Patch::Keep, Patch::Set),
            ..ProductPatch::of(request.pricing_ref)
        })
    }
}

impl ProductEdit {
    /// Sets the first and the last billed day. If several products have the pricing, the first day identifies the
    /// product.
    #[must_use]
    pub fn billed(self, first: impl Into<Given<NaiveDate>>, last: impl Into<Given<NaiveDate>>) -> Self {
        let last = last.into();
        self.billed_from(first).billed_until(last)
    }

    /// Sets the first billed day.
    #[must_use]
    pub fn billed_from(self, first: impl Into<Given<NaiveDate>>) -> Self {
        let first = first.into();
        self.change(move |product| {
            product.billing_start_date = Some(first.read("billing_start_date")?);
            Ok(())
        })
    }

    /// Sets the last billed day.
    #[must_use]
    pub fn billed_until(self, last: impl Into<Given<NaiveDate>>) -> Self {
        let last = last.into();
        self.change(move |product| {
            product.billing_end_date = Some(last.read("billing_end_date")?);
            Ok(())
        })
    }

    /// Copies the current prices and line items of the pricing.
    #[must_use]
    pub fn reprice(self) -> Self {
        self.with(|product| product.reprice = true)
    }

    /// Selects a line item with its differences from the pricing. The product then has only the selected line items.
    #[must_use]
    pub fn line_item(self, item: LineItemTerms) -> Self {
        self.change(move |product| {
            let mut items = match std::mem::take(&mut product.line_items) {
                Patch::Set(items) => items,
                Patch::Keep | Patch::Clear => Vec::new(),
            };
            items.push(item.read()?);
            product.line_items = Patch::Set(items);
            Ok(())
        })
    }

    /// Selects all line items of the pricing.
    #[must_use]
    pub fn all_line_items(self) -> Self {
        self.with(|product| product.line_items = Patch::Clear)
    }

    /// Removes the stated tax, so that the default of the customer or the entity applies.
    #[must_use]
    pub fn default_tax(self) -> Self {
        self.with(|product| product.tax = Patch::Clear)
    }

    /// Sets the tax category at a rate of 0, with the reason as text if the category needs one (billing rules 10).
    #[must_use]
    pub fn tax_category(self, category: TaxCategory, reason: Option<&str>) -> Self {
        let reason = reason.map(Given::<OneLine>::from);
        self.change(move |product| {
            product.treatment.category = Patch::Set(category);
            let reason = reason.as_ref().map(|reason| reason.read("tax_exemption_reason")).transpose()?;
            product.treatment.exemption_reason = reason.map_or(Patch::Clear, Patch::Set);
            Ok(())
        })
    }

    pub(super) fn patch(&self) -> Result<ProductPatch, Refusal> {
        let mut patch = ProductPatch::of(self.reference.read("product_pricing_ref")?);
        self.recipe.apply(&mut patch)?;
        Ok(patch)
    }
}
