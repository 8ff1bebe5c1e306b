//! The last result of `verify` for an organization, as text in the organization's row.

use billing_domain::calendar::Timestamp;
use billing_domain::ports::StoreResult;
use billing_domain::refs::OrganizationId;
use billing_domain::verification::{Finding, RecordedVerification, Verification};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};

use crate::row::{Row, to_json};
use crate::schema::organizations;
use crate::sql_types::{Bound, JsonText};
use crate::text_value;
use crate::tx::{Transaction, with_conn};

#[derive(Serialize, Deserialize)]
struct VerificationJson {
    #[serde(with = "text_value")]
    begun_at: Timestamp,
    #[serde(with = "text_value")]
    ended_at: Timestamp,
    contracts: u64,
    documents: u64,
    events: u64,
    #[serde(default)]
    accounts: u64,
    wrong: u64,
    findings: Vec<FindingJson>,
}

#[derive(Serialize, Deserialize)]
struct FindingJson {
    subject: String,
    detail: String,
}

impl Transaction<'_> {
    pub(super) fn write_verification(
        &mut self,
        organization: OrganizationId,
        recorded: &RecordedVerification,
    ) -> StoreResult<()> {
        let RecordedVerification { begun_at, ended_at, wrong, seen } = recorded;
        let finding = |Finding { subject, detail }: &Finding| FindingJson { subject: subject.clone(), detail: detail.clone() };
        let text = to_json(&VerificationJson {
            begun_at: *begun_at,
            ended_at: *ended_at,
            contracts: seen.contracts,
            documents: seen.documents,
            events: seen.events,
            accounts: seen.accounts,
            wrong: *wrong,
            findings: seen.findings.iter().map(finding).collect(),
        })?;
        with_conn!(self, "organizations", |conn| diesel::update(organizations::table.find(Bound(organization.as_uuid())))
            .set(organizations::last_verification.eq(Some(text)))
            .execute(conn))?;
        Ok(())
    }

    pub(super) fn read_verification(&mut self, organization: OrganizationId) -> StoreResult<Option<RecordedVerification>> {
        let found: Option<Option<JsonText>> = with_conn!(self, "organizations", |conn| organizations::table
            .find(Bound(organization.as_uuid()))
            .select(organizations::last_verification)
            .first(conn)
            .optional())?;
        let Some(text) = found.flatten() else { return Ok(None) };
        let read: VerificationJson = Row::new("organizations", organization).json("last_verification", &text)?;
        let finding = |FindingJson { subject, detail }| Finding { subject, detail };
        let VerificationJson { begun_at, ended_at, contracts, documents, events, accounts, wrong, findings } = read;
        let findings = findings.into_iter().map(finding).collect();
        Ok(Some(RecordedVerification {
            begun_at,
            ended_at,
            wrong,
            seen: Verification { contracts, documents, events, accounts, findings },
        }))
    }
}
