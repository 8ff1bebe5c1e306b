//! The log-ins of clients that send their key with each request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use billing_domain::access::TokenClaims;
use billing_domain::calendar::Timestamp;

/// The maximum number of remembered log-ins. They need about 200 bytes each.
const MAX_REMEMBERED: usize = 10_000;

/// The log-ins that this server remembers.
#[derive(Default)]
pub(crate) struct RememberedLogIns(Mutex<HashMap<[u8; 32], TokenClaims>>);

impl RememberedLogIns {
    pub(crate) fn find(&self, digest: &[u8; 32], now: Timestamp) -> Option<TokenClaims> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.get(digest).filter(|claims| claims.expires_at > now).cloned()
    }

    pub(crate) fn remember(&self, digest: [u8; 32], claims: TokenClaims, now: Timestamp) {
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MAX_REMEMBERED {
            remembered.retain(|_, claims| claims.expires_at > now);
        }
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(digest, claims);
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::ports::IdSource as _;
    use billing_domain::refs::{ApiKeyRef, OrganizationId};
    use billing_testkit::{CountingIds, fixtures};

    use super::*;

    fn claims(seconds: i64) -> TokenClaims {
        let (ids, issued_at) = (CountingIds::new(), fixtures::at(fixtures::CREATED_AT));
        TokenClaims {
            api_key_ref: ApiKeyRef::from_uuid(ids.new_id()),
            organization: OrganizationId::from_uuid(ids.new_id()),
            token_id: ids.new_id(),
            issued_at,
            expires_at: issued_at.plus_seconds(seconds),
        }
    }

    #[test]
    fn a_log_in_is_remembered_until_a_token_would_expire() {
        let (log_ins, now) = (RememberedLogIns::default(), fixtures::at(fixtures::CREATED_AT));
        log_ins.remember([1; 32], claims(10), now);
        for (digest, later, found) in [(1, 0, true), (1, 9, true), (1, 10, false), (2, 0, false)] {
            assert_eq!(log_ins.find(&[digest; 32], now.plus_seconds(later)).is_some(), found, "{digest} after {later} s");
        }
    }

    #[test]
    fn more_keys_than_fit_forget_the_oldest_log_ins_first() {
        let (log_ins, now) = (RememberedLogIns::default(), fixtures::at(fixtures::CREATED_AT));
        let digest = |number: usize| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_le_bytes());
            digest
        };
        (0..MAX_REMEMBERED).for_each(|number| log_ins.remember(digest(number), claims(if number == 0 { 100 } else { 1 }), now));
        log_ins.remember(digest(MAX_REMEMBERED), claims(100), now.plus_seconds(2));
        assert!([0, MAX_REMEMBERED].iter().all(|number| log_ins.find(&digest(*number), now.plus_seconds(2)).is_some()));
        assert_eq!(log_ins.0.lock().expect("no panic").len(), 2);
    }
}
