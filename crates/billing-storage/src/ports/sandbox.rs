//! The billing clock of a sandbox.

use billing_domain::calendar::Timestamp;
use billing_domain::ports::{SandboxClockStore, StoreResult};
use diesel::prelude::*;

use crate::row::{Cell, Row};
use crate::schema::{
    administrators, api_keys, contracts, notices, replay_log, revoked_tokens, sandbox, sessions, signing_secrets,
    webhook_deliveries, webhook_endpoints, webhook_secrets,
};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

/// The key of the only row.
const THE_ROW: i64 = 1;

impl SandboxClockStore for Transaction<'_> {
    fn sandbox_now(&mut self) -> StoreResult<Option<Timestamp>> {
        let now: Option<Cell<Timestamp>> =
            with_conn!(self, "sandbox", |conn| sandbox::table.select(sandbox::now).first(conn).optional())?;
        now.map(|now| Row::new("sandbox", THE_ROW).cell("now", now)).transpose()
    }

    fn put_sandbox_now(&mut self, now: Timestamp) -> StoreResult<()> {
        let changed =
            with_conn!(self, "sandbox", |conn| diesel::update(sandbox::table).set(sandbox::now.eq(Bound(now))).execute(conn))?;
        if changed == 0 {
            with_conn!(self, "sandbox", |conn| diesel::insert_into(sandbox::table)
                .values((sandbox::id.eq(THE_ROW), sandbox::now.eq(Bound(now))))
                .execute(conn))?;
        }
        Ok(())
    }

    fn delete_access(&mut self) -> StoreResult<()> {
        macro_rules! empty {
            ($($table:ident),+) => { $(with_conn!(self, "a copy", |conn| diesel::delete($table::table).execute(conn))?;)+ };
        }
        empty!(
            sessions,
            administrators,
            revoked_tokens,
            api_keys,
            signing_secrets,
            replay_log,
            webhook_deliveries,
            webhook_secrets,
            webhook_endpoints
        );
        Ok(())
    }

    fn next_due_instant(&mut self, after: Timestamp) -> StoreResult<Option<Timestamp>> {
        let contract: Option<Option<Cell<Timestamp>>> = with_conn!(self, "contracts", |conn| contracts::table
            .filter(contracts::next_due_at.is_not_null().and(contracts::next_due_at.gt(Bound(after))))
            .order(contracts::next_due_at)
            .select(contracts::next_due_at)
            .first(conn)
            .optional())?;
        let notice: Option<Cell<Timestamp>> = with_conn!(self, "notices", |conn| notices::table
            .filter(notices::at.gt(Bound(after)))
            .order(notices::at)
            .select(notices::at)
            .first(conn)
            .optional())?;
        let contract = Row::new("contracts", "").optional("next_due_at", contract.flatten())?;
        let notice = Row::new("notices", "").optional("at", notice)?;
        Ok(contract.into_iter().chain(notice).min())
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::calendar::Timestamp;
    use billing_domain::ports::SandboxClockStore as _;

    use crate::query_plans::plans_of;

    #[test]
    fn the_next_due_instant_is_a_step_in_two_indexes() {
        let after = Timestamp::from_micros(0).expect("an instant");
        let plans = plans_of(|tx| assert_eq!(tx.next_due_instant(after).expect("a read"), None));
        let steps: Vec<&str> = plans.iter().flat_map(|plan| plan.steps.iter().map(String::as_str)).collect();
        let [contracts, notices] = steps.as_slice() else { panic!("two steps: {steps:?}") };
        assert!(contracts.contains("SEARCH contracts USING COVERING INDEX contracts_due (next_due_at>?)"), "{contracts}");
        assert!(notices.contains("SEARCH notices USING COVERING INDEX notices_due (at>?)"), "{notices}");
    }
}
