//! Usage that was refused.

use std::sync::Arc;

use billing_domain::calendar::Date;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{RefusedFilter, RefusedUsage, StoreResult};
use billing_domain::refs::OrganizationId;
use billing_domain::refused::{RefusedCount, RefusedKey};

use super::{MemoryTx, page};

fn passes(filter: &RefusedFilter, key: &RefusedKey) -> bool {
    let RefusedFilter { from, to, code, customer_ref, usage_product_ref } = filter;
    from.is_none_or(|from| from <= key.day)
        && to.is_none_or(|to| key.day <= to)
        && code.as_ref().is_none_or(|code| *code == key.code)
        && customer_ref.as_ref().is_none_or(|customer_ref| *customer_ref == key.customer_ref)
        && usage_product_ref.as_ref().is_none_or(|usage_product_ref| *usage_product_ref == key.usage_product_ref)
}

impl RefusedUsage for MemoryTx {
    fn add_refused_usage(&mut self, counts: &[(RefusedKey, RefusedCount)]) -> StoreResult<()> {
        let all = Arc::make_mut(&mut self.state.refused_usage);
        for (key, count) in counts {
            match all.get_mut(key) {
                Some(present) => present.add(count.clone()),
                None => drop(all.insert(key.clone(), count.clone())),
            }
        }
        Ok(())
    }

    fn refused_usage(
        &mut self,
        organization: OrganizationId,
        filter: &RefusedFilter,
        request: PageRequest,
    ) -> StoreResult<Page<(RefusedKey, RefusedCount)>> {
        let own = self.state.refused_usage.iter().filter(|(key, _)| key.organization == organization && passes(filter, key));
        let rows: Vec<(RefusedKey, RefusedCount)> = own.map(|(key, count)| (key.clone(), count.clone())).collect();
        Ok(page(rows.iter(), request, |(key, _)| (std::cmp::Reverse(key.day), key.clone())))
    }

    fn purge_refused_usage(&mut self, before: Date) -> StoreResult<u64> {
        let all = Arc::make_mut(&mut self.state.refused_usage);
        let size = all.len();
        all.retain(|key, _| key.day >= before);
        Ok((size - all.len()) as u64)
    }
}
