//! Shortens a failing history: drops steps and products while the history still fails.

use crate::histories::spec::History;

/// Returns the shortest history found that still fails.
pub(crate) fn shrink(mut history: History, fails: impl Fn(&History) -> bool) -> History {
    let mut size = history.steps.len().max(1);
    while size > 0 {
        let mut from = 0;
        let mut dropped = false;
        while from < history.steps.len() {
            let mut shorter = history.clone();
            shorter.steps.drain(from..(from + size).min(history.steps.len()));
            if fails(&shorter) {
                history = shorter;
                dropped = true;
            } else {
                from += size;
            }
        }
        if !dropped || size > history.steps.len().max(1) {
            size = if size == 1 && dropped { 1 } else { size / 2 };
        }
    }
    while history.products.len() > 1 {
        let shorter = (0..history.products.len()).find_map(|i| {
            let mut shorter = history.clone();
            shorter.products.remove(i);
            fails(&shorter).then_some(shorter)
        });
        match shorter {
            Some(shorter) => history = shorter,
            None => break,
        }
    }
    history
}
