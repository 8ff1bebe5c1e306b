//! Handlers for the audit log.

use actix_web::HttpResponse;
use billing_application::audit::{self, AuditList};

use crate::caller::Caller;
use crate::problem::Problem;
use crate::query::Query;

pub(crate) async fn list_audit_entries(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let asked = query.audit()?;
    let (filter, wanted) = (asked.filter.clone(), asked.wanted);
    let found = caller.run(move |services, principal| match &filter {
        Some(filter) => audit::list_audit_entries(services, principal, filter, wanted),
        None => Ok(AuditList { items: Vec::new(), next: None, total: wanted.with_total.then_some(0) }),
    });
    Ok(query.answer_audit(&asked, &found.await?))
}
