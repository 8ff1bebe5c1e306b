//! The units of credit of entities.

use billing_domain::credit::unit::{CreditUnit, CreditUnits, CreditUnitsError, MAX_CREDIT_UNITS, UnitAmounts};
use billing_domain::money::Currency;
use billing_domain::text::OneLine;
use serde::Serializer;
use serde_json::json;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};

use super::declare::{ResponseValue, Wire, answer, object, wire};
use super::input::Node;
use super::schemas::Schemas;
use super::values::{LineText, PriceAboveZero};
use super::wire::ExactNumber;

object! {
    /// A unit of credit.
    CreditUnit as "CreditUnitBody" {
        /// Name of the unit, such as `credits`.
        name: OneLine,
        /// Price of one unit in the currency, above 0.
        per_unit: PriceAboveZero,
    }
}

answer! {
    /// A unit of credit.
    CreditUnitJson of unit: CreditUnit {
        /// Name of the unit.
        name: LineText = &unit.name,
        /// Price of one unit in the currency.
        per_unit: ExactNumber = unit.per_unit,
    }
}

answer! {
    /// An amount of credit in units.
    UnitsJson of units: UnitAmounts<1> {
        let [amount] = units.amounts;
        /// Name of the unit.
        name: LineText = &units.name,
        /// Amount.
        amount: ExactNumber = amount,
    }
}

answer! {
    /// Amounts of a grant in units of credit.
    GrantUnitsJson of units: UnitAmounts<5> {
        let [amount, usable, drawn, covered, free] = units.amounts;
        /// Name of the unit.
        name: LineText = &units.name,
        /// Credit that was given or sold.
        amount: ExactNumber = amount,
        /// What documents may take in all.
        usable: ExactNumber = usable,
        /// What issued documents have taken.
        drawn: ExactNumber = drawn,
        /// What drafts take.
        covered: ExactNumber = covered,
        /// What further documents can take.
        free: ExactNumber = free,
    }
}

answer! {
    /// Credit of a customer with an entity in a currency, in units of credit.
    BalanceUnitsJson of units: UnitAmounts<2> {
        let [free, covered] = units.amounts;
        /// Name of the unit.
        name: LineText = &units.name,
        /// Prepaid credit that further documents can take.
        credit_free: ExactNumber = free,
        /// Prepaid credit that drafts take.
        credit_covered: ExactNumber = covered,
    }
}

answer! {
    /// Credit of a customer with an entity in a currency, in units of credit, of the grants that cover usage of today.
    AccountCreditUnitsJson of units: UnitAmounts<2> {
        let [free, held] = units.amounts;
        /// Name of the unit.
        name: LineText = &units.name,
        /// Credit that further documents can take.
        free: ExactNumber = free,
        /// What open holds would take of `free`.
        held: ExactNumber = held,
    }
}

wire! {
    CreditUnits: credit_units, |schemas| described(<CreditUnit as Wire>::schema(schemas));
}

impl ResponseValue for CreditUnits {
    fn answer<S: Serializer>(value: &Self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(value.entries().map(|(currency, unit)| (currency.code(), CreditUnitJson::from(unit))))
    }

    fn answered_schema(schemas: &mut Schemas) -> RefOr<Schema> {
        described(schemas.refer::<CreditUnitJson>()).into()
    }
}

fn described(unit: RefOr<Schema>) -> ObjectBuilder {
    let about = "Units of prepaid credit by the code of the currency, each with its price. Credit is money: a unit only names a part of \
                 it. An edit replaces all units.";
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::RefOr(unit)))
        .max_properties(Some(MAX_CREDIT_UNITS))
        .description(Some(about))
        .examples([json!({"EUR": {"name": "credits", "per_unit": 0.01}})])
}

fn credit_units(node: Node<'_>) -> Option<CreditUnits> {
    node.object(|fields| {
        let entries = fields.entries();
        if entries.len() > MAX_CREDIT_UNITS {
            return node.taken(Err(CreditUnitsError::TooMany));
        }
        let entry = |(code, unit): (&str, Node<'_>)| {
            let currency = unit.taken(Currency::from_code(code));
            let unit = CreditUnit::read(unit);
            Some((currency?, unit?))
        };
        // Every entry is checked, also after a violation.
        let all: Vec<Option<(Currency, CreditUnit)>> = entries.map(entry).collect();
        node.taken(CreditUnits::new(all.into_iter().collect::<Option<Vec<_>>>()?))
    })
}
