//! The compiled expressions of a mapping.

use std::collections::HashSet;

use billing_domain::format::{Expression, FormatError, FormatMapping, FormatTarget, Naming, ReportMapping};
use rhai::Engine;

use crate::program::{EVENT, ITEM, Program};

/// The programs of a mapping.
pub(crate) struct Compiled {
    pub(crate) timestamp: Program,
    pub(crate) customer: Names,
    pub(crate) usage_product: Names,
    pub(crate) quantity: Program,
    pub(crate) columns: Vec<(String, Program)>,
    pub(crate) currency: Option<Program>,
    pub(crate) entity_ref: Option<Program>,
    pub(crate) idempotency_key: Option<Program>,
    pub(crate) skip_if: Option<Program>,
    pub(crate) for_each: Option<Program>,
    /// The paths of the event's fields that the expressions name.
    pub(crate) named: HashSet<Vec<String>>,
}

/// The programs that identify a customer or a usage product.
pub(crate) enum Names {
    Ref(Program),
    Name(Program),
    Either { reference: Program, name: Program },
}

impl Compiled {
    /// Compiles a mapping. The list of errors is never empty.
    pub(crate) fn compile(engine: &Engine, mapping: &FormatMapping) -> Result<Self, Vec<FormatError>> {
        let mut errors = Vec::new();
        let mut named = HashSet::new();
        let variables: &[&'static str] = if mapping.for_each.is_some() { &[EVENT, ITEM] } else { &[EVENT] };
        let mut program = |target: FormatTarget, expression: &Expression| {
            let variables = if target == FormatTarget::ForEach { &[EVENT] } else { variables };
            match Program::compile(engine, target, expression, variables) {
                Ok(program) => {
                    named.extend(program.named.fields.iter().cloned());
                    Some(program)
                }
                Err(error) => {
                    errors.push(error);
                    None
                }
            }
        };
        let timestamp = program(FormatTarget::Timestamp, &mapping.timestamp);
        let customer = names(&mapping.customer, FormatTarget::CustomerRef, FormatTarget::CustomerName, &mut program);
        let (by_ref, by_name) = (FormatTarget::UsageProductRef, FormatTarget::UsageProductName);
        let usage_product = names(&mapping.usage_product, by_ref, by_name, &mut program);
        let quantity = program(FormatTarget::Quantity, &mapping.quantity);
        let mut columns = Vec::new();
        if let ReportMapping::Columns(listed) = &mapping.report_data {
            for (key, expression) in listed.entries() {
                columns
                    .extend(program(FormatTarget::ReportColumn(key.clone()), expression).map(|program| (key.clone(), program)));
            }
        }
        let mut optional = |target, expression: &Option<Expression>| expression.as_ref().and_then(|found| program(target, found));
        let currency = optional(FormatTarget::Currency, &mapping.currency);
        let entity_ref = optional(FormatTarget::EntityRef, &mapping.entity_ref);
        let idempotency_key = optional(FormatTarget::IdempotencyKey, &mapping.idempotency_key);
        let skip_if = optional(FormatTarget::SkipIf, &mapping.skip_if);
        let for_each = optional(FormatTarget::ForEach, &mapping.for_each);
        match (timestamp, customer, usage_product, quantity) {
            (Some(timestamp), Some(customer), Some(usage_product), Some(quantity)) if errors.is_empty() => Ok(Self {
                timestamp,
                customer,
                usage_product,
                quantity,
                columns,
                currency,
                entity_ref,
                idempotency_key,
                skip_if,
                for_each,
                named,
            }),
            _ => Err(errors),
        }
    }
}

fn names(
    naming: &Naming,
    by_ref: FormatTarget,
    by_name: FormatTarget,
    program: &mut impl FnMut(FormatTarget, &Expression) -> Option<Program>,
) -> Option<Names> {
    match naming {
        Naming::Ref(reference) => program(by_ref, reference).map(Names::Ref),
        Naming::Name(name) => program(by_name, name).map(Names::Name),
        Naming::Either { reference, name } => {
            // Both are compiled, so that the errors of both are reported.
            let (reference, name) = (program(by_ref, reference), program(by_name, name));
            reference.zip(name).map(|(reference, name)| Names::Either { reference, name })
        }
    }
}
