//! Whole mappings: compiled once, cached, and evaluated field by field.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display};
use std::sync::{Arc, PoisonError, RwLock};

use billing_domain::calendar::Timestamp;
use billing_domain::format::{
    Expression, FormatError, FormatMapping, FormatTarget, MappedEvent, Naming, RefOrName, ReportMapping,
};
use billing_domain::money::Currency;
use billing_domain::ports::EventMapper;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{CustomerRef, EntityRef, RefError, UsageProductRef};
use billing_domain::text::OneLine;
use billing_domain::usage::{ReportData, ReportValue, Validations};
use rhai::{Engine, Scope};
use serde_json::Value;

use crate::program::{EVENT, Program};
use crate::values::{event_value, kind, plain, read_event, report_value};
use crate::{budget, engine};

/// The maximum number of compiled mappings in the cache. A further one replaces an arbitrary entry.
pub const MAX_COMPILED_FORMATS: usize = 256;

/// An evaluator of usage formats with rhai. One instance serves the whole process.
pub struct RhaiMapper {
    engine: Engine,
    // The key is the mapping, not its reference and version: those are unique only within an organization.
    compiled: RwLock<HashMap<FormatMapping, Arc<Compiled>>>,
}

struct Compiled {
    timestamp: Program,
    customer: Names,
    usage_product: Names,
    quantity: Program,
    columns: Vec<(String, Program)>,
    currency: Option<Program>,
    entity_ref: Option<Program>,
    /// The event's fields that the expressions name.
    named: HashSet<String>,
}

enum Names {
    Ref(Program),
    Name(Program),
    Either { reference: Program, name: Program },
}

impl RhaiMapper {
    /// Creates a mapper with an empty cache.
    pub fn new() -> Self {
        Self { engine: engine::build(), compiled: RwLock::default() }
    }

    fn compiled(&self, mapping: &FormatMapping) -> Result<Arc<Compiled>, FormatError> {
        // A poisoned lock still guards complete entries, because one call inserts each.
        if let Some(found) = self.compiled.read().unwrap_or_else(PoisonError::into_inner).get(mapping) {
            return Ok(Arc::clone(found));
        }
        let fresh = self.compile(mapping).map_err(|mut errors| errors.swap_remove(0))?;
        let fresh = Arc::new(fresh);
        let mut compiled = self.compiled.write().unwrap_or_else(PoisonError::into_inner);
        if compiled.len() >= MAX_COMPILED_FORMATS
            && let Some(any) = compiled.keys().next().cloned()
        {
            compiled.remove(&any);
        }
        compiled.insert(mapping.clone(), Arc::clone(&fresh));
        Ok(fresh)
    }

    /// Compiles a mapping. The list of errors is never empty.
    fn compile(&self, mapping: &FormatMapping) -> Result<Compiled, Vec<FormatError>> {
        let mut errors = Vec::new();
        let mut named = HashSet::new();
        let mut program = |target, expression: &Expression| match Program::compile(&self.engine, target, expression) {
            Ok(program) => {
                named.extend(program.fields.iter().cloned());
                Some(program)
            }
            Err(error) => {
                errors.push(error);
                None
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
        let currency = mapping.currency.as_ref().and_then(|expression| program(FormatTarget::Currency, expression));
        let entity_ref = mapping.entity_ref.as_ref().and_then(|expression| program(FormatTarget::EntityRef, expression));
        match (timestamp, customer, usage_product, quantity) {
            (Some(timestamp), Some(customer), Some(usage_product), Some(quantity)) if errors.is_empty() => {
                Ok(Compiled { timestamp, customer, usage_product, quantity, columns, currency, entity_ref, named })
            }
            _ => Err(errors),
        }
    }
}

impl Default for RhaiMapper {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RhaiMapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RhaiMapper")
    }
}

impl EventMapper for RhaiMapper {
    fn check(&self, mapping: &FormatMapping) -> Result<(), Vec<FormatError>> {
        self.compile(mapping).map(|_| ())
    }

    fn map(&self, mapping: &FormatMapping, event: &str) -> Result<MappedEvent, FormatError> {
        let compiled = self.compiled(mapping)?;
        let about_event = |reason| fail(FormatTarget::Event, reason);
        let fields = read_event(event).map_err(about_event)?;
        let (value, values) = event_value(&fields).map_err(about_event)?;
        let mut scope = Scope::new();
        scope.push_dynamic(EVENT, value);
        budget::start(event.len(), values);
        let mut run = Run { engine: &self.engine, scope: &mut scope };
        Ok(MappedEvent {
            timestamp: run.timestamp(&compiled.timestamp)?,
            customer: run.names(&compiled.customer, CustomerRef::parse)?,
            usage_product: run.names(&compiled.usage_product, UsageProductRef::parse)?,
            quantity: run.quantity(&compiled.quantity)?,
            report_data: match &mapping.report_data {
                ReportMapping::None => None,
                ReportMapping::Columns(_) => Some(run.columns(&compiled.columns)?),
                ReportMapping::Rest => Some(rest(&fields, &compiled.named)),
                ReportMapping::Field(name) => entries(&fields, name)?,
            },
            validations: run.validations(&compiled)?,
        })
    }
}

/// The engine and the event of an evaluation.
struct Run<'a, 'scope> {
    engine: &'a Engine,
    scope: &'a mut Scope<'scope>,
}

impl Run<'_, '_> {
    fn timestamp(&mut self, program: &Program) -> Result<Timestamp, FormatError> {
        let text = program.text(self.engine, self.scope)?;
        program.read(&text, Timestamp::parse)
    }

    fn names<R>(&mut self, names: &Names, parse: fn(&str) -> Result<R, RefError>) -> Result<RefOrName<R>, FormatError> {
        match names {
            Names::Ref(reference) => {
                let text = reference.text(self.engine, self.scope)?;
                reference.read(&text, parse).map(RefOrName::Ref)
            }
            Names::Name(name) => self.name(name),
            Names::Either { reference, name } => match reference.optional_text(self.engine, self.scope)? {
                Some(text) => reference.read(&text, parse).map(RefOrName::Ref),
                None => self.name(name),
            },
        }
    }

    fn name<R>(&mut self, program: &Program) -> Result<RefOrName<R>, FormatError> {
        let text = program.text(self.engine, self.scope)?;
        program.read(&text, OneLine::parse).map(RefOrName::Name)
    }

    fn quantity(&mut self, program: &Program) -> Result<Quantity, FormatError> {
        let value = program.evaluate(self.engine, self.scope)?;
        match plain(&value) {
            Some(ReportValue::Number(text) | ReportValue::Text(text)) => program.read(&text, Quantity::parse_reported),
            _ if value.is_unit() => Err(program.fail("has no value: number expected")),
            _ => Err(program.fail(format!("gives {}: number expected", kind(&value)))),
        }
    }

    fn columns(&mut self, columns: &[(String, Program)]) -> Result<ReportData, FormatError> {
        let mut entries = Vec::with_capacity(columns.len());
        for (key, program) in columns {
            let value = program.evaluate(self.engine, self.scope)?;
            let value =
                report_value(&value).ok_or_else(|| program.fail(format!("gives {}: plain value expected", kind(&value))))?;
            entries.push((key.clone(), value));
        }
        Ok(ReportData::new(entries))
    }

    fn validations(&mut self, compiled: &Compiled) -> Result<Option<Validations>, FormatError> {
        let currency = self.optional(compiled.currency.as_ref(), Currency::from_code)?;
        let entity_ref = self.optional(compiled.entity_ref.as_ref(), EntityRef::parse)?;
        let any = currency.is_some() || entity_ref.is_some();
        Ok(any.then_some(Validations { currency, entity_ref }))
    }

    fn optional<T, E: Display>(
        &mut self,
        program: Option<&Program>,
        parse: fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, FormatError> {
        let Some(program) = program else { return Ok(None) };
        let text = program.optional_text(self.engine, self.scope)?;
        text.map(|text| program.read(&text, parse)).transpose()
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

fn rest(fields: &serde_json::Map<String, Value>, named: &HashSet<String>) -> ReportData {
    of_fields(fields.iter().filter(|(key, _)| !named.contains(*key)))
}

fn entries(fields: &serde_json::Map<String, Value>, name: &str) -> Result<Option<ReportData>, FormatError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(entries)) => Ok(Some(of_fields(entries))),
        Some(_) => Err(fail(FormatTarget::ReportData, format!("`{name}` must be an object"))),
    }
}

fn of_fields<'f>(fields: impl IntoIterator<Item = (&'f String, &'f Value)>) -> ReportData {
    ReportData::new(fields.into_iter().map(|(key, value)| (key.clone(), billing_json::report_value(value))))
}

fn fail(target: FormatTarget, reason: impl Into<String>) -> FormatError {
    FormatError { target, expression: None, position: None, reason: reason.into() }
}
