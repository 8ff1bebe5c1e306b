//! Runs use cases inside an open transaction. The changes of several use cases and their stored response are committed
//! together or not at all.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use billing_domain::ports::{Access, RollBack, Store, StoreResult, Tx};

use crate::Services;
use crate::dry_run::DryRunRecorder;

/// The store in which use cases run their transactions.
#[derive(Clone)]
pub enum StoreHandle<'s> {
    /// A store. Every use case has its own transaction.
    Own(Arc<dyn Store>),
    /// An open transaction. Every use case joins it.
    Joined(&'s dyn Store),
    /// An open transaction of a dry run, with the recorder of affected resources. It is rolled back at the end.
    Rehearsing(&'s dyn Store, &'s DryRunRecorder),
}

impl<'s> Deref for StoreHandle<'s> {
    type Target = dyn Store + 's;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Own(store) => &**store,
            Self::Joined(store) | Self::Rehearsing(store, _) => *store,
        }
    }
}

impl<S: Store + 'static> From<Arc<S>> for StoreHandle<'_> {
    fn from(store: Arc<S>) -> Self {
        Self::Own(store)
    }
}

impl fmt::Debug for StoreHandle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own(_) => "Own",
            Self::Joined(_) => "Joined",
            Self::Rehearsing(..) => "Rehearsing",
        })
    }
}

impl Services<'_> {
    /// Runs use cases in an open transaction. Each is committed with it, or rolled back alone if it fails.
    pub fn in_transaction<T>(&self, tx: &mut dyn Tx, work: impl FnOnce(&Services<'_>) -> T) -> T {
        let store = OpenTransaction(Mutex::new(tx));
        work(&Services { store: StoreHandle::Joined(&store), ..self.clone() })
    }

    /// Does the same as [`in_transaction`](Self::in_transaction) in a transaction that the caller rolls back at the end.
    pub(crate) fn in_dry_run<T>(&self, tx: &mut dyn Tx, rehearsal: &DryRunRecorder, work: impl FnOnce(&Services<'_>) -> T) -> T {
        let store = OpenTransaction(Mutex::new(tx));
        work(&Services { store: StoreHandle::Rehearsing(&store, rehearsal), ..self.clone() })
    }

    /// Returns whether use cases run in an outer transaction.
    pub(crate) const fn is_in_transaction(&self) -> bool {
        matches!(self.store, StoreHandle::Joined(_) | StoreHandle::Rehearsing(..))
    }

    /// Returns the recorder of affected resources in a dry run.
    pub(crate) const fn rehearsal(&self) -> Option<&DryRunRecorder> {
        match self.store {
            StoreHandle::Rehearsing(_, rehearsal) => Some(rehearsal),
            StoreHandle::Own(_) | StoreHandle::Joined(_) => None,
        }
    }
}

/// An open transaction that acts as a store. Use cases run in it one after another on one thread. The mutex exists only
/// because stores must be shareable.
struct OpenTransaction<'t>(Mutex<&'t mut dyn Tx>);

impl Store for OpenTransaction<'_> {
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        let mut tx = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match access {
            Access::Write => tx.attempt(work),
            // Reads change nothing, so no rollback is necessary.
            Access::Glance | Access::Read => {
                let (Ok(()) | Err(RollBack)) = work(&mut **tx);
                Ok(())
            }
        }
    }

    fn ready(&self) -> StoreResult<()> {
        Ok(())
    }
}
