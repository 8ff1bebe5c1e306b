//! Whole mappings: compiled once, cached, and evaluated element by element and field by field.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display};
use std::sync::{Arc, PoisonError, RwLock};

use billing_domain::calendar::Timestamp;
use billing_domain::format::{
    FieldPath, FormatError, FormatMapping, FormatTarget, MAX_RECORD_ELEMENTS, MappedEvent, MappedRecord, RefOrName, ReportMapping,
};
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::money::Currency;
use billing_domain::ports::EventMapper;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{CustomerRef, EntityRef, RefError, UsageProductRef};
use billing_domain::text::OneLine;
use billing_domain::usage::{ReportData, ReportValue, Validations};
use rhai::{Array, Engine, Scope};
use serde_json::Value;

use crate::compiled::{Compiled, Names};
use crate::program::{EVENT, ITEM, Program};
use crate::values::{MAX_EVENTS_BYTES, event_value, kind, plain, read_event, report_value, shortened};
use crate::{budget, engine};

/// The maximum number of compiled mappings in the cache. A further one replaces an arbitrary entry.
pub const MAX_COMPILED_FORMATS: usize = 256;

/// An evaluator of usage formats with rhai. One instance serves the whole process.
pub struct RhaiMapper {
    engine: Engine,
    // The key is the mapping, not its reference and version: those are unique only within an organization.
    compiled: RwLock<HashMap<FormatMapping, Arc<Compiled>>>,
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
        let fresh = Compiled::compile(&self.engine, mapping).map_err(|mut errors| errors.swap_remove(0))?;
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
        Compiled::compile(&self.engine, mapping).map(drop)
    }

    fn map(&self, mapping: &FormatMapping, event: &str) -> Result<MappedRecord, FormatError> {
        let compiled = self.compiled(mapping)?;
        let about_event = |reason| fail(FormatTarget::Event, reason);
        let fields = read_event(event).map_err(about_event)?;
        let (value, values) = event_value(&fields).map_err(about_event)?;
        let mut scope = Scope::new();
        scope.push_dynamic(EVENT, value);
        budget::start(event.len(), values);
        let mut run = Run { engine: &self.engine, scope: &mut scope, compiled: &compiled, mapping, fields: &fields };
        run.record(event.len())
    }
}

/// The engine, the mapping and the record of an evaluation.
struct Run<'a, 'scope> {
    engine: &'a Engine,
    scope: &'a mut Scope<'scope>,
    compiled: &'a Compiled,
    mapping: &'a FormatMapping,
    fields: &'a serde_json::Map<String, Value>,
}

impl Run<'_, '_> {
    /// Maps the record, which has `bytes` bytes.
    fn record(&mut self, bytes: usize) -> Result<MappedRecord, FormatError> {
        let compiled = self.compiled;
        let is_of_items = compiled.skip_if.as_ref().is_some_and(|condition| condition.named.has_item);
        if !is_of_items && self.is_skipped()? {
            return Ok(MappedRecord::Skipped);
        }
        let Some(for_each) = &compiled.for_each else {
            return self.event().map(|event| MappedRecord::Event(Box::new(event)));
        };
        let items = self.items(for_each)?;
        if items.is_empty() {
            return Ok(MappedRecord::Skipped);
        }
        let mut elements = Vec::with_capacity(items.len());
        for item in items {
            self.scope.push_dynamic(ITEM, item);
            let is_skipped = if is_of_items { self.is_skipped() } else { Ok(false) };
            elements.push(is_skipped.and_then(|is_skipped| if is_skipped { Ok(None) } else { self.event().map(Some) }));
            self.scope.rewind(1);
        }
        let events = elements.iter().filter(|element| matches!(element, Ok(Some(_)))).count();
        if bytes * events > MAX_EVENTS_BYTES {
            let reason = format!("gives {events} events of a record of {bytes} bytes: at most {MAX_EVENTS_BYTES} bytes in all");
            return Err(for_each.fail(reason));
        }
        self.require_own_keys(&elements)?;
        Ok(MappedRecord::Elements(elements))
    }

    fn is_skipped(&mut self) -> Result<bool, FormatError> {
        let Some(condition) = &self.compiled.skip_if else { return Ok(false) };
        let value = condition.evaluate(self.engine, self.scope)?;
        value.as_bool().map_err(|_| condition.fail(format!("gives {}: true or false expected", kind(&value))))
    }

    fn items(&mut self, for_each: &Program) -> Result<Array, FormatError> {
        let value = for_each.evaluate(self.engine, self.scope)?;
        let given = kind(&value);
        let items = value.into_array().map_err(|_| for_each.fail(format!("gives {given}: list expected")))?;
        if items.len() > MAX_RECORD_ELEMENTS {
            let reason = format!("gives a list of {}: at most {MAX_RECORD_ELEMENTS} elements", items.len());
            return Err(for_each.fail(reason));
        }
        Ok(items)
    }

    /// Rejects a record in which two events have the same key, because the second one would count as a repeat of the first.
    fn require_own_keys(&self, elements: &[Result<Option<MappedEvent>, FormatError>]) -> Result<(), FormatError> {
        let Some(program) = &self.compiled.idempotency_key else { return Ok(()) };
        let mut first = HashMap::new();
        for (index, element) in elements.iter().enumerate() {
            if let Ok(Some(MappedEvent { idempotency_key: Some(key), .. })) = element
                && let Some(before) = first.insert(key, index)
            {
                let shown = shortened(key.as_str());
                return Err(program.fail(format!("gives {shown} for items {before} and {index}: name item in the key")));
            }
        }
        Ok(())
    }

    /// Maps the event, or the element in the scope.
    fn event(&mut self) -> Result<MappedEvent, FormatError> {
        let compiled = self.compiled;
        Ok(MappedEvent {
            timestamp: self.timestamp(&compiled.timestamp)?,
            customer: self.names(&compiled.customer, CustomerRef::parse)?,
            usage_product: self.names(&compiled.usage_product, UsageProductRef::parse)?,
            quantity: self.quantity(&compiled.quantity)?,
            report_data: match &self.mapping.report_data {
                ReportMapping::None => None,
                ReportMapping::Columns(_) => Some(self.columns(&compiled.columns)?),
                ReportMapping::Rest => Some(rest(self.fields, &compiled.named)),
                ReportMapping::Field(path) => entries(self.fields, path)?,
                ReportMapping::PlainRest(path) => plain_rest(self.fields, path, &compiled.named),
            },
            validations: self.validations()?,
            idempotency_key: self.key()?,
        })
    }

    fn key(&mut self) -> Result<Option<IdempotencyKey>, FormatError> {
        let Some(program) = &self.compiled.idempotency_key else { return Ok(None) };
        let value = program.evaluate(self.engine, self.scope)?;
        match plain(&value) {
            Some(value @ (ReportValue::Null | ReportValue::Number(_) | ReportValue::Text(_))) => {
                value.label().map(|text| program.read(&text, IdempotencyKey::parse)).transpose()
            }
            _ => Err(program.fail(format!("gives {}: text or number expected", kind(&value)))),
        }
    }

    fn timestamp(&mut self, program: &Program) -> Result<Option<Timestamp>, FormatError> {
        let text = program.optional_text(self.engine, self.scope)?;
        text.map(|text| program.read(&text, Timestamp::parse)).transpose()
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

    fn validations(&mut self) -> Result<Option<Validations>, FormatError> {
        let compiled = self.compiled;
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

fn rest(fields: &serde_json::Map<String, Value>, named: &HashSet<Vec<String>>) -> ReportData {
    let named: HashSet<&String> = named.iter().filter_map(|path| path.first()).collect();
    of_fields(fields.iter().filter(|(key, _)| !named.contains(key)))
}

fn plain_rest(fields: &serde_json::Map<String, Value>, path: &FieldPath, named: &HashSet<Vec<String>>) -> Option<ReportData> {
    let path: Vec<&str> = path.names().collect();
    let (first, deeper) = path.split_first()?;
    let found = deeper.iter().try_fold(fields.get(*first)?, |value, name| value.as_object()?.get(*name))?.as_object()?;
    let of_object = named.iter().filter(|named| named.len() > path.len() && path.iter().eq(&named[..path.len()]));
    let named: HashSet<&String> = of_object.map(|named| &named[path.len()]).collect();
    let is_plain = |value: &Value| !value.is_object() && !value.is_array();
    Some(of_fields(found.iter().filter(|(key, value)| is_plain(value) && !named.contains(key))))
}

fn entries(fields: &serde_json::Map<String, Value>, path: &FieldPath) -> Result<Option<ReportData>, FormatError> {
    let mut found = fields;
    let mut passed: Vec<&str> = Vec::new();
    for name in path.names() {
        passed.push(name);
        found = match found.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(entries)) => entries,
            Some(_) => return Err(fail(FormatTarget::ReportData, format!("`{}` must be an object", passed.join(".")))),
        };
    }
    Ok(Some(of_fields(found)))
}

fn of_fields<'f>(fields: impl IntoIterator<Item = (&'f String, &'f Value)>) -> ReportData {
    ReportData::new(fields.into_iter().map(|(key, value)| (key.clone(), billing_json::report_value(value))))
}

fn fail(target: FormatTarget, reason: impl Into<String>) -> FormatError {
    FormatError { target, expression: None, position: None, reason: reason.into() }
}
