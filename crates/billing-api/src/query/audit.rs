//! Filters and cursors of the audit log.

use billing_application::audit::{AuditList, AuditQuery};
use billing_domain::access::RequestId;
use billing_domain::audit::{AuditAction, AuditActor, AuditPosition, AuditedKind};
use billing_domain::calendar::Timestamp;
use billing_domain::page::PageRequest;
use billing_domain::ports::{AuditFilter, AuditPart};
use billing_domain::refs::AuditRef;
use http::header::LINK;

use super::lists::possible;
use super::{AnyText, CURSOR, DEFAULT_PAGE_SIZE, Paged, Query, SearchRef, TOTAL, last_page, require_number_or_cursor};
use crate::dto::audit::AuditEntryJson;
use crate::dto::declare::{Fieldset as _, params};
use crate::dto::input::Fields;
use crate::dto::wire::written;
use crate::problem::Problem;
use crate::stored_response::Success;

params! {
    /// Filters and page of the audit log.
    AuditParams {
        /// Author: `admin:` or `api_key:` and a reference, `command_line`, `scheduler` or `nobody`.
        actor: Option<SearchRef<AuditActor>>,
        /// Kind of the changed object.
        object_kind: Option<AuditedKind>,
        /// Reference of the changed object.
        object_ref: Option<AnyText>,
        /// Action.
        action: Option<AuditAction>,
        /// Earliest time, RFC 3339 with an offset.
        from: Option<Timestamp>,
        /// Latest time, exclusive.
        to: Option<Timestamp>,
        /// Id of the request.
        request_id: Option<SearchRef<RequestId>>,
        /// Position to continue from, as in the `next` link of the same list. Excludes `pageNumber`.
        cursor: Option<AnyText>,
        /// Whether to count all entries. Default: `true`, with `cursor` `false`.
        totals: Option<bool>,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
    with {
        fn check(fields: Fields<'_>) {
            require_number_or_cursor(fields);
        }
    }
}

/// A query of the audit log.
#[derive(Clone, Debug)]
pub struct AuditListRequest {
    /// The filter; `None` if nothing can match.
    pub filter: Option<AuditFilter>,
    pub wanted: AuditQuery,
    /// The page, if requested by number.
    page: Option<PageRequest>,
}

impl AuditParams {
    fn asked(self, fields: Fields<'_>) -> Option<AuditListRequest> {
        let after = match &self.cursor {
            None => None,
            Some(text) => match read_cursor(text) {
                Some(after) => Some(after),
                None => return fields.refuse(CURSOR, "invalid_value", "must come from the `next` link of the same list"),
            },
        };
        let (page, with_total) = (self.page.0, self.totals.unwrap_or(after.is_none()));
        let skip = if after.is_some() { 0 } else { page.offset() };
        let wanted = AuditQuery { part: AuditPart { after, skip, limit: page.size() }, with_total };
        Some(AuditListRequest { page: after.is_none().then_some(page), wanted, filter: self.filter() })
    }

    fn filter(self) -> Option<AuditFilter> {
        Some(AuditFilter {
            author: possible(self.actor)?,
            action: self.action,
            kind: self.object_kind,
            reference: self.object_ref,
            from: self.from,
            to: self.to,
            request_id: possible(self.request_id)?,
            without_access: false,
        })
    }
}

impl Query {
    /// Reads a query of the audit log.
    pub fn audit(&self) -> Result<AuditListRequest, Problem> {
        self.read_as(|fields| AuditParams::read_whole(fields)?.asked(fields))
    }

    /// Builds the response with a part of the log.
    pub fn answer_audit(&self, asked: &AuditListRequest, list: &AuditList) -> Success {
        let elements: Vec<AuditEntryJson> = list.items.iter().map(AuditEntryJson::from).collect();
        let size = u64::from(asked.wanted.part.limit);
        let next = list.next.map(|next| format!("{CURSOR}={}~{}", next.at.as_micros(), next.audit_ref));
        let number = asked.page.map(|page| page.number().into());
        let links = self.links_around(size, number, next, list.total.map(|total| last_page(total, size)));
        let page = Success::json(written(&elements)).with(LINK, &links);
        match list.total {
            Some(total) => page.with(TOTAL, &total.to_string()),
            None => page,
        }
    }
}

/// Reads a position in the log as written by [`answer_audit`](Query::answer_audit).
fn read_cursor(text: &str) -> Option<AuditPosition> {
    let (at, audit_ref) = text.split_once('~')?;
    Some(AuditPosition { at: Timestamp::from_micros(at.parse().ok()?).ok()?, audit_ref: AuditRef::parse(audit_ref).ok()? })
}
