//! Handlers for the audit log.

use billing_application::audit::{self, AuditList};

use crate::call::{Call, Reply};
use crate::respond::respond;

pub(crate) async fn list_audit_entries(call: Call) -> Reply {
    let asked = call.query.audit()?;
    let (filter, wanted) = (asked.filter.clone(), asked.wanted);
    let found = call.look_up(move |cx| match &filter {
        Some(filter) => audit::list_audit_entries(cx, filter, wanted),
        None => Ok(AuditList { items: Vec::new(), next: None, total: wanted.with_total.then_some(0) }),
    });
    Ok(respond(call.query.answer_audit(&asked, &found.await?)))
}
