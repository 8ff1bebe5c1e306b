//! Default taxes of customers and entities: what a request makes of them, and what is in force (billing rules 7).

use billing_domain::calendar::Date;
use billing_domain::calendar::TimeZone;
use billing_domain::contract::amendment::TaxTreatmentPatch;
use billing_domain::money::Percentage;
use billing_domain::party::Entity;
use billing_domain::patch::Patch;
use billing_domain::ports::Tx;
use billing_domain::refs::{EntityRef, OrganizationId};
use billing_domain::tax::{DefaultTaxes, StatedTax};
use billing_domain::violation::Violations;

use crate::Services;
use crate::error::UseCaseResult;

/// What a request names of a customer's default tax.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaxPatch {
    /// Percent.
    pub rate: Patch<Percentage>,
    /// Category, reason and day.
    pub basis: TaxBasisPatch,
}

/// What a request names of a default tax beside the rate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaxBasisPatch {
    /// Category and reason.
    pub treatment: TaxTreatmentPatch,
    /// From when it holds; today, or since the beginning where none is in force, when left out.
    pub from: Option<Date>,
}

impl From<TaxBasisPatch> for TaxPatch {
    fn from(basis: TaxBasisPatch) -> Self {
        Self { rate: Patch::Keep, basis }
    }
}

impl TaxPatch {
    /// Whether it names anything but the day.
    pub(super) fn is_named(&self) -> bool {
        self.rate.is_named() || self.basis.treatment != TaxTreatmentPatch::default()
    }

    /// Changes default taxes. What it leaves out stays as it is in force on the day; what is in force already is no change unless
    /// the day is given.
    ///
    /// # Errors
    /// `tax_from` without a tax is [`Invalid`](crate::error::UseCaseError::Invalid).
    pub fn apply(self, taxes: &DefaultTaxes, today: Date) -> Result<DefaultTaxes, Violations> {
        if !self.is_named() {
            return match self.basis.from {
                None => Ok(taxes.clone()),
                Some(_) => {
                    let detail = "must be left out unless a tax is given that holds from this day: \
                                  state tax_category, exemption_code, exemption_reason or, of a customer, tax beside it";
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

/// What is in force today of default taxes. The day is only asked for where it decides.
pub(super) fn in_force(taxes: &DefaultTaxes, today: impl FnOnce() -> UseCaseResult<Date>) -> UseCaseResult<StatedTax> {
    match taxes.as_slice() {
        [] => Ok(StatedTax::default()),
        [only] if only.from.is_none() => Ok(only.stated.clone()),
        _ => Ok(taxes.on(today()?)),
    }
}

/// Today by an entity's calendar.
pub(super) fn today_of_entity(services: &Services, entity: &Entity) -> Date {
    entity.profile.time_zone.service_date(services.now())
}

/// Today as customers' default taxes count it: by the calendar of the organization's default entity.
pub(super) fn today_of_customers(services: &Services, tx: &mut dyn Tx, organization: OrganizationId) -> UseCaseResult<Date> {
    let default = default_entity(tx, organization)?;
    let found = match default {
        Some(default) => tx.entities_by_refs(organization, &[default])?,
        None => Vec::new(),
    };
    Ok(found.first().map_or_else(|| TimeZone::UTC.service_date(services.now()), |entity| today_of_entity(services, entity)))
}

/// The entity that bills where neither product nor customer names one.
pub(super) fn default_entity(tx: &mut dyn Tx, organization: OrganizationId) -> UseCaseResult<Option<EntityRef>> {
    Ok(tx.organization(organization)?.and_then(|organization| organization.default_entity))
}
