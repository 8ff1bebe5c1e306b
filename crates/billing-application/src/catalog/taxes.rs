//! Default taxes of customers and entities: their changes and the tax in force (billing rules 7).

use billing_domain::calendar::Date;
use billing_domain::calendar::TimeZone;
use billing_domain::contract::amendment::TaxTreatmentPatch;
use billing_domain::money::Percentage;
use billing_domain::party::{Customer, Entity};
use billing_domain::patch::Patch;
use billing_domain::refs::EntityRef;
use billing_domain::tax::{DefaultTaxes, StatedTax};
use billing_domain::violation::Violations;

use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseResult, unknown_reference};

/// A requested change of a customer's default tax.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaxPatch {
    /// The rate in percent.
    pub rate: Patch<Percentage>,
    /// Category, reason and first day.
    pub basis: TaxBasisPatch,
}

/// A requested change of a default tax without its rate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaxBasisPatch {
    /// Category and reason.
    pub treatment: TaxTreatmentPatch,
    /// The first day. If missing: today, or the beginning if no tax is in force.
    pub from: Option<Date>,
}

impl From<TaxBasisPatch> for TaxPatch {
    fn from(basis: TaxBasisPatch) -> Self {
        Self { rate: Patch::Keep, basis }
    }
}

impl TaxPatch {
    /// Returns whether the request names anything besides the day.
    pub(super) fn is_named(&self) -> bool {
        self.rate.is_named() || self.basis.treatment != TaxTreatmentPatch::default()
    }

    /// Returns the changed default taxes. Missing fields keep their values as of the day. Without an explicit day, a tax that
    /// is already in force is no change.
    ///
    /// # Errors
    /// Returns a violation for `tax_from` without a tax.
    pub fn apply(self, taxes: &DefaultTaxes, today: Date) -> Result<DefaultTaxes, Violations> {
        if !self.is_named() {
            return match self.basis.from {
                None => Ok(taxes.clone()),
                Some(_) => {
                    let detail = "must be omitted if no tax is given: state tax_category, exemption_code, exemption_reason or, of a customer, tax beside it";
                    Err(Violations::one(&["tax_from"], "not_allowed", detail))
                }
            };
        }
        let present = taxes.on(self.basis.from.unwrap_or(today));
        let stated = StatedTax { rate: self.rate.apply(present.rate), basis: self.basis.treatment.apply(present.basis.clone()) };
        if self.basis.from.is_none() && stated == taxes.on(today) {
            return Ok(taxes.clone());
        }
        Ok(taxes.with(stated, self.basis.from, today))
    }
}

/// Returns the default tax in force today. Determines the day only if the result depends on it.
pub(super) fn in_force(taxes: &DefaultTaxes, today: impl FnOnce() -> UseCaseResult<Date>) -> UseCaseResult<StatedTax> {
    match taxes.as_slice() {
        [] => Ok(StatedTax::default()),
        [only] if only.from.is_none() => Ok(only.stated.clone()),
        _ => Ok(taxes.on(today()?)),
    }
}

/// Returns today's date for customers' default taxes, in the time zone of the organization's default entity.
pub(super) fn today_of_customers(cx: &mut Cx<'_>) -> UseCaseResult<Date> {
    let found = match default_entity(cx)? {
        Some(default) => cx.tx.entities_by_refs(cx.organization, &[default])?,
        None => Vec::new(),
    };
    Ok(found.first().map_or(TimeZone::UTC, |entity| entity.profile.time_zone).service_date(cx.now))
}

/// Returns the entity with the requested reference, else the customer's default entity, else the organization's.
pub(crate) fn entity_of_customer(cx: &mut Cx<'_>, customer: &Customer, asked: Option<&EntityRef>) -> UseCaseResult<Entity> {
    let entity_ref = match asked.or(customer.profile.entity_ref.as_ref()) {
        Some(entity_ref) => entity_ref.clone(),
        None => default_entity(cx)?.ok_or_else(|| {
            let detail = "must be given, because neither the customer nor the organization has a default entity";
            Violations::one(&["entity_ref"], "entity_required", detail)
        })?,
    };
    let found = cx.tx.entities_by_refs(cx.organization, std::slice::from_ref(&entity_ref))?;
    Ok(found.into_iter().next().ok_or_else(|| unknown_reference(&["entity_ref"], ResourceKind::Entity))?)
}

/// Returns the entity that bills if neither the product nor the customer names an entity.
pub(super) fn default_entity(cx: &mut Cx<'_>) -> UseCaseResult<Option<EntityRef>> {
    Ok(cx.tx.organization(cx.organization)?.and_then(|organization| organization.default_entity))
}
