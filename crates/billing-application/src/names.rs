//! The names of the objects that a response refers to. They are read once per response, with one statement per kind of object.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::Deref;
use std::sync::Arc;

use billing_domain::access::Permission;
use billing_domain::audit::{AuditActor, AuditedKind};
use billing_domain::notification::Subject;
use billing_domain::page::Page;
use billing_domain::ports::{ObjectKey, ObjectName, Tx};
use billing_domain::refs::OrganizationId;

use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};

/// The objects whose names are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameRequest(BTreeSet<ObjectKey>);

impl NameRequest {
    /// Adds an object.
    pub fn add(&mut self, kind: AuditedKind, reference: impl Display) {
        self.0.insert((kind, reference.to_string()));
    }

    /// Adds the administrator or API key that made a change.
    pub fn add_actor(&mut self, actor: AuditActor) {
        self.0.extend(key_of_actor(actor));
    }

    /// Adds the subject of a notification.
    pub fn add_subject(&mut self, subject: Subject) {
        self.0.insert(key_of_subject(subject));
    }
}

fn key_of_actor(actor: AuditActor) -> Option<ObjectKey> {
    match actor {
        AuditActor::Admin(admin) => Some((AuditedKind::Administrator, admin.to_string())),
        AuditActor::ApiKey(key) => Some((AuditedKind::ApiKey, key.to_string())),
        AuditActor::CommandLine | AuditActor::Scheduler | AuditActor::Nobody => None,
    }
}

fn key_of_subject(subject: Subject) -> ObjectKey {
    match subject {
        Subject::Document(document_ref) => (AuditedKind::Document, document_ref.to_string()),
        Subject::Contract(contract_ref) => (AuditedKind::Contract, contract_ref.to_string()),
        Subject::Grant(grant_ref) => (AuditedKind::CreditGrant, grant_ref.to_string()),
        Subject::Limit(limit_ref) => (AuditedKind::Limit, limit_ref.to_string()),
        Subject::Endpoint(endpoint_ref) => (AuditedKind::WebhookEndpoint, endpoint_ref.to_string()),
    }
}

/// The names that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectNames(BTreeMap<ObjectKey, ObjectName>);

impl ObjectNames {
    /// Returns the name of an object.
    pub fn of(&self, kind: AuditedKind, reference: impl Display) -> Option<&ObjectName> {
        self.0.get(&(kind, reference.to_string()))
    }

    /// Returns the e-mail address of an administrator or the name of an API key.
    pub fn of_actor(&self, actor: AuditActor) -> Option<String> {
        Some(self.0.get(&key_of_actor(actor)?)?.name.clone())
    }

    /// Returns the number or URL of the subject of a notification.
    pub fn of_subject(&self, subject: Subject) -> Option<String> {
        Some(self.0.get(&key_of_subject(subject))?.name.clone())
    }
}

/// A resource with the names of the objects that it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<T> {
    /// The resource.
    pub item: T,
    /// The names, which all resources of a response share.
    pub names: Arc<ObjectNames>,
}

impl<T> Named<T> {
    /// Returns a resource without names.
    pub fn without_names(item: T) -> Self {
        Self { item, names: Arc::default() }
    }
}

/// A named resource is read like the resource.
impl<T> Deref for Named<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

/// Returns resources with the names of the objects that `add` requests for each of them.
///
/// Only administrators and owners see who made a change, because the lists of administrators and API keys are theirs.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the names cannot be read.
pub fn name_all<T>(cx: &mut Cx<'_>, items: Vec<T>, add: impl Fn(&T, &mut NameRequest)) -> UseCaseResult<Vec<Named<T>>> {
    let mut request = NameRequest::default();
    for item in &items {
        add(item, &mut request);
    }
    let principal = cx.principal()?;
    if principal.role().is_none() && !principal.has(Permission::Owner) {
        request.0.retain(|(kind, _)| !matches!(kind, AuditedKind::Administrator | AuditedKind::ApiKey));
    }
    let names = Arc::new(read_names(cx.tx, cx.organization, &request)?);
    Ok(items.into_iter().map(|item| Named { item, names: Arc::clone(&names) }).collect())
}

/// Does the same as [`name_all`] for a page.
///
/// # Errors
/// Returns the errors of [`name_all`].
pub fn name_page<T>(cx: &mut Cx<'_>, page: Page<T>, add: impl Fn(&T, &mut NameRequest)) -> UseCaseResult<Page<Named<T>>> {
    Ok(Page { total: page.total, items: name_all(cx, page.items, add)? })
}

/// Does the same as [`name_all`] for one resource.
///
/// # Errors
/// Returns the errors of [`name_all`].
pub fn name_one<T>(cx: &mut Cx<'_>, item: T, add: impl Fn(&T, &mut NameRequest)) -> UseCaseResult<Named<T>> {
    let named = name_all(cx, vec![item], add)?.pop();
    named.ok_or(UseCaseError::InvariantViolation("a list of one without an element"))
}

/// Returns the names of objects.
pub(crate) fn read_names(tx: &mut dyn Tx, organization: OrganizationId, request: &NameRequest) -> UseCaseResult<ObjectNames> {
    if request.0.is_empty() {
        return Ok(ObjectNames::default());
    }
    Ok(ObjectNames(tx.object_names(organization, &request.0)?))
}
