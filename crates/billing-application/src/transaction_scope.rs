//! Use cases inside a transaction that is open already: what several of them do, and what is stored about their
//! answer, is committed together or not at all.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use billing_domain::ports::{Access, RollBack, Store, StoreResult, Tx};

use crate::Services;
use crate::dry_run::DryRunRecorder;

/// The store that use cases run their transactions in.
#[derive(Clone)]
pub enum StoreHandle<'s> {
    /// A store: every use case has a transaction of its own.
    Own(Arc<dyn Store>),
    /// An open transaction of a store: every use case joins it.
    Joined(&'s dyn Store),
    /// The same, of one that is undone in the end, with what notes what is touched.
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
    /// Runs use cases in an open transaction: each is committed with it, or undone alone where it refuses.
    pub fn in_transaction<T>(&self, tx: &mut dyn Tx, work: impl FnOnce(&Services<'_>) -> T) -> T {
        let store = OpenTransaction(Mutex::new(tx));
        work(&Services { store: StoreHandle::Joined(&store), ..self.clone() })
    }

    /// [`joined`](Self::joined), in a transaction that is undone in the end.
    pub(crate) fn in_dry_run<T>(&self, tx: &mut dyn Tx, rehearsal: &DryRunRecorder, work: impl FnOnce(&Services<'_>) -> T) -> T {
        let store = OpenTransaction(Mutex::new(tx));
        work(&Services { store: StoreHandle::Rehearsing(&store, rehearsal), ..self.clone() })
    }

    /// Whether use cases run in one open transaction.
    pub(crate) const fn is_in_transaction(&self) -> bool {
        matches!(self.store, StoreHandle::Joined(_) | StoreHandle::Rehearsing(..))
    }

    /// What notes what is touched, where that is only rehearsed.
    pub(crate) const fn rehearsal(&self) -> Option<&DryRunRecorder> {
        match self.store {
            StoreHandle::Rehearsing(_, rehearsal) => Some(rehearsal),
            StoreHandle::Own(_) | StoreHandle::Joined(_) => None,
        }
    }
}

/// An open transaction as a store. One use case after another runs in it, on one thread; the lock is there because a
/// store may be shared.
struct OpenTransaction<'t>(Mutex<&'t mut dyn Tx>);

impl Store for OpenTransaction<'_> {
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        let mut tx = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match access {
            Access::Write => tx.attempt(work),
            // Nothing is written, so there is nothing to undo.
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
