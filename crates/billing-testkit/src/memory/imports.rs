//! Imports of files, and the events that each made.

use std::cmp::Reverse;
use std::ops::Bound;
use std::sync::Arc;

use billing_domain::calendar::Timestamp;
use billing_domain::imports::{KeptImport, MadeEvent};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{ImportFilter, MadePart, StoreResult, UsageImports};
use billing_domain::refs::{CustomerId, EventRef, ImportPartRef, ImportRef, OrganizationId};
use uuid::Uuid;

use super::{MemoryTx, page};

impl UsageImports for MemoryTx {
    fn put_import(&mut self, organization: OrganizationId, import: &KeptImport) -> StoreResult<()> {
        Arc::make_mut(&mut self.state.imports).insert((organization, import.import_ref), import.clone());
        Ok(())
    }

    fn import(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<Option<KeptImport>> {
        Ok(self.state.imports.get(&(organization, import_ref)).cloned())
    }

    fn hold_import(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<Option<KeptImport>> {
        self.import(organization, import_ref)
    }

    fn imports(
        &mut self,
        organization: OrganizationId,
        filter: &ImportFilter,
        request: PageRequest,
    ) -> StoreResult<Page<KeptImport>> {
        let ImportFilter { from, to, name } = filter;
        let passes = |import: &&KeptImport| {
            from.is_none_or(|from| from <= import.begun_at)
                && to.is_none_or(|to| import.begun_at < to)
                && name.as_ref().is_none_or(|name| Some(name) == import.file.name.as_ref())
        };
        let own = self.state.imports.iter().filter(|((owner, _), _)| *owner == organization).map(|(_, import)| import);
        Ok(page(own.filter(passes), request, |import| Reverse((import.begun_at, import.import_ref))))
    }

    fn add_made_events(
        &mut self,
        organization: OrganizationId,
        import_ref: ImportRef,
        part: ImportPartRef,
        events: &[MadeEvent],
    ) -> StoreResult<()> {
        Arc::make_mut(&mut self.state.made_events).insert((organization, import_ref, part), events.to_vec());
        Ok(())
    }

    fn made_events(
        &mut self,
        organization: OrganizationId,
        import_ref: ImportRef,
        after: Option<ImportPartRef>,
    ) -> StoreResult<Option<MadePart>> {
        let after = (organization, import_ref, after.unwrap_or(ImportPartRef::from_uuid(Uuid::nil())));
        let next = self.state.made_events.range((Bound::Excluded(after), Bound::Unbounded)).next();
        let own = next.filter(|((owner, of, _), _)| (*owner, *of) == (organization, import_ref));
        Ok(own
            .map(|((_, _, part), events)| MadePart { part: *part, events: events.iter().map(|event| event.event_ref).collect() }))
    }

    fn count_made_events(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<u64> {
        let parts = self.state.made_events.iter().filter(|((owner, of, _), _)| (*owner, *of) == (organization, import_ref));
        Ok(parts.map(|(_, events)| events.len() as u64).sum())
    }

    fn forget_made_events(
        &mut self,
        organization: OrganizationId,
        import_ref: ImportRef,
        part: ImportPartRef,
        events: &[(CustomerId, EventRef)],
    ) -> StoreResult<()> {
        let is_gone = |event_ref: EventRef| events.iter().any(|(_, gone)| *gone == event_ref);
        let parts = Arc::make_mut(&mut self.state.made_events);
        let Some(noted) = parts.get_mut(&(organization, import_ref, part)) else { return Ok(()) };
        let (gone, left): (Vec<MadeEvent>, Vec<MadeEvent>) =
            std::mem::take(noted).into_iter().partition(|event| is_gone(event.event_ref));
        if left.is_empty() {
            parts.remove(&(organization, import_ref, part));
        } else {
            *noted = left;
        }
        self.state.kept_events.retain(organization, |(customer_id, kept)| {
            let is_forgotten = |event: &MadeEvent| event.event_ref == kept.event_ref && event.key.as_ref() == Some(&kept.key);
            !(events.contains(&(*customer_id, kept.event_ref)) && gone.iter().any(is_forgotten))
        });
        Ok(())
    }

    fn forget_import(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<()> {
        Arc::make_mut(&mut self.state.imports).remove(&(organization, import_ref));
        let of_another =
            |(owner, of, _): &(OrganizationId, ImportRef, ImportPartRef)| (*owner, *of) != (organization, import_ref);
        Arc::make_mut(&mut self.state.made_events).retain(|key, _| of_another(key));
        Ok(())
    }

    fn purge_imports(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let mut old: Vec<(Timestamp, OrganizationId, ImportRef)> = self
            .state
            .imports
            .values()
            .zip(self.state.imports.keys())
            .filter(|(import, _)| import.begun_at < before)
            .map(|(import, (organization, import_ref))| (import.begun_at, *organization, *import_ref))
            .collect();
        old.sort();
        old.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        for (_, organization, import_ref) in &old {
            self.forget_import(*organization, *import_ref)?;
        }
        Ok(old.len() as u64)
    }
}
