//! Passwords of administrators, hashed with bcrypt. Keys of software are random enough for a fast hash, see `keys`.

use std::collections::HashSet;
use std::sync::LazyLock;

use bcrypt::HashParts;
use billing_domain::access::{MAX_PASSWORD_BYTES, MIN_PASSWORD_BYTES, PasswordHash};
use billing_domain::ports::{PasswordCheck, PasswordHasher, SecretError};

use crate::failed;

/// The default cost. One hash takes 2 to this power rounds, about a quarter of a second.
pub const DEFAULT_COST: u32 = 12;

/// The costs that a server accepts. Hashes below the minimum can be guessed too fast; the maximum takes about four
/// seconds.
pub const COSTS: std::ops::RangeInclusive<u32> = 10..=16;

const COSTS_OF_BCRYPT: std::ops::RangeInclusive<u32> = 4..=31;
/// A salt and hash that match no password, in bcrypt's alphabet.
const NOBODY: &str = "NobodyHasThisPassword.NobodyHasThisPassword.Nobodyu.u";

/// Common passwords in lower case, one per line, none shorter than the minimum length.
static COMMON: LazyLock<HashSet<&str>> = LazyLock::new(|| include_str!("common_passwords.txt").lines().collect());

/// A password hasher with bcrypt 2b.
#[derive(Clone, Debug)]
pub struct BcryptPasswords {
    cost: u32,
    dummy: String,
}

impl BcryptPasswords {
    /// Creates a hasher with [`DEFAULT_COST`].
    pub fn new() -> Self {
        Self::at(DEFAULT_COST)
    }

    /// Creates a hasher with another cost. Tests use 4, the minimum.
    ///
    /// # Errors
    /// Returns [`SecretError::Failed`] for a cost outside 4 to 31.
    pub fn with_cost(cost: u32) -> Result<Self, SecretError> {
        if COSTS_OF_BCRYPT.contains(&cost) { Ok(Self::at(cost)) } else { Err(failed(format!("bcrypt has no cost {cost}"))) }
    }

    fn at(cost: u32) -> Self {
        Self { cost, dummy: format!("$2b${cost:02}${NOBODY}") }
    }
}

impl Default for BcryptPasswords {
    fn default() -> Self {
        Self::new()
    }
}

impl PasswordHasher for BcryptPasswords {
    fn hash(&self, password: &str) -> Result<PasswordHash, SecretError> {
        if !has_allowed_length(password) {
            return Err(SecretError::PasswordLength);
        }
        if COMMON.contains(password.to_lowercase().as_str()) {
            return Err(SecretError::CommonPassword);
        }
        // Not `non_truncating_hash`: it also rejects 72 bytes, where bcrypt only drops the terminating NUL.
        behind_others(|| bcrypt::hash(password, self.cost)).map(PasswordHash).map_err(failed)
    }

    fn check(&self, password: &str, hash: Option<&PasswordHash>) -> PasswordCheck {
        // All of the following runs in every case, so that the time reveals nothing.
        let known = hash.map_or(self.dummy.as_str(), |hash| hash.0.as_str());
        let equal = behind_others(|| bcrypt::verify(password, known)).unwrap_or(false);
        if equal & hash.is_some() & has_allowed_length(password) { PasswordCheck::Right } else { PasswordCheck::Wrong }
    }

    fn is_outdated(&self, hash: &PasswordHash) -> bool {
        hash.0.parse::<HashParts>().is_ok_and(|parts| parts.get_cost() != self.cost)
    }
}

/// The niceness of hashing threads: under load they get about a tenth of the processor time of other threads.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Runs work on a thread with lower priority than the rest of the process. Unauthenticated clients can cause password
/// hashing, which must not delay usage. A separate thread is needed, because a lowered priority cannot be raised again.
fn behind_others<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let given_way = || {
        // Outside Linux, `nice` would affect the whole process. If it is not permitted, the work still runs.
        #[cfg(target_os = "linux")]
        rustix::process::nice(NICENESS).ok();
        work()
    };
    std::thread::scope(|scope| scope.spawn(given_way).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns whether bcrypt can hash the password safely. bcrypt reads 72 bytes and repeats the password with a NUL after
/// it. A longer password would equal its prefix, and a password with a NUL would equal its repetition.
fn has_allowed_length(password: &str) -> bool {
    (MIN_PASSWORD_BYTES..=MAX_PASSWORD_BYTES).contains(&password.len()) && !password.contains('\0')
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn quick() -> BcryptPasswords {
        BcryptPasswords::with_cost(4).expect("bcrypt's smallest cost")
    }

    #[test]
    fn the_right_password_is_right_and_no_other_is() {
        let hash = quick().hash("correct horse battery").expect("a good password");
        assert_eq!(quick().check("correct horse battery", Some(&hash)), PasswordCheck::Right);
        for wrong in ["", "correct horse batterY", "correct horse battery ", "x"] {
            assert_eq!(quick().check(wrong, Some(&hash)), PasswordCheck::Wrong, "{wrong:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn hashing_gives_way_to_other_work_which_stays_as_it_was() {
        let priority = || rustix::process::getpriority_process(None).expect("a priority");
        let before = priority();
        assert_eq!((behind_others(priority), priority()), ((before + NICENESS).min(19), before));
    }

    #[test]
    fn twelve_to_72_bytes_are_taken_and_nothing_is_cut() {
        let (shortest, longest) = ("é23456789ab", "é".repeat(36));
        assert_eq!((shortest.len(), longest.len()), (12, 72));
        for good in [shortest, &longest] {
            let hash = quick().hash(good).expect(good);
            assert_eq!(quick().check(good, Some(&hash)), PasswordCheck::Right, "{good}");
        }
        let hash = quick().hash(&longest).expect("72 bytes");
        assert_eq!(quick().check(&format!("{longest}x"), Some(&hash)), PasswordCheck::Wrong);
        for bad in ["", "eleven byte", &"x".repeat(73), &"é".repeat(37)] {
            assert_eq!(quick().hash(bad), Err(SecretError::PasswordLength), "{bad:?}");
        }
    }

    #[test]
    fn a_nul_is_refused_where_bcrypt_would_take_a_repetition_for_the_password() {
        assert_eq!(quick().hash("twelve\0bytes!"), Err(SecretError::PasswordLength));
        let hash = quick().hash("twelve bytes").expect("a good password");
        assert!(bcrypt::verify("twelve bytes\0twelve bytes", &hash.0).expect("a hash"));
        assert_eq!(quick().check("twelve bytes\0twelve bytes", Some(&hash)), PasswordCheck::Wrong);
    }

    #[test]
    fn common_passwords_are_refused_in_any_case() {
        for common in ["password1234", "Password1234", "QWERTYUIOPAS", "correcthorsebatterystaple"] {
            assert_eq!(quick().hash(common), Err(SecretError::CommonPassword), "{common}");
        }
    }

    #[test]
    fn the_list_of_common_passwords_is_in_lower_case_and_holds_only_what_would_be_taken_otherwise() {
        assert!(COMMON.len() >= 100, "{}", COMMON.len());
        assert_eq!(COMMON.len(), include_str!("common_passwords.txt").lines().count(), "one is there twice");
        for common in COMMON.iter() {
            assert!(has_allowed_length(common) && common.to_lowercase() == **common && common.trim() == *common, "{common:?}");
        }
    }

    #[test]
    fn hashes_of_one_password_differ_and_carry_the_cost() {
        let (one, two) = (quick().hash("twelve bytes").expect("hash"), quick().hash("twelve bytes").expect("hash"));
        assert_ne!(one, two);
        assert!(one.0.starts_with("$2b$04$"));
        let usual = BcryptPasswords::new();
        assert!(usual.dummy.starts_with("$2b$12$") && usual.dummy.len() == 60);
        assert!(BcryptPasswords::with_cost(3).is_err() && BcryptPasswords::with_cost(32).is_err());
    }

    #[test]
    fn a_hash_of_another_cost_is_outdated() {
        let hash = quick().hash("twelve bytes").expect("hash");
        let dearer = BcryptPasswords::with_cost(5).expect("a cost");
        assert_eq!((quick().is_outdated(&hash), dearer.is_outdated(&hash)), (false, true));
        assert!(!dearer.is_outdated(&PasswordHash("nonsense".to_owned())));
    }

    #[test]
    fn an_unknown_name_takes_the_time_of_a_known_one() {
        let passwords = BcryptPasswords::with_cost(9).expect("a cost");
        let hash = passwords.hash("twelve bytes").expect("hash");
        let time = |hash: Option<&PasswordHash>| {
            let start = Instant::now();
            assert_eq!(passwords.check("twelve other bytes", hash), PasswordCheck::Wrong);
            start.elapsed()
        };
        // By turns, so that other processes delay both alike.
        let (known, unknown): (Vec<Duration>, Vec<Duration>) = (0..15).map(|_| (time(Some(&hash)), time(None))).unzip();
        let (known, unknown) = (fastest(known), fastest(unknown));
        let cost = passwords.dummy.parse::<HashParts>().map(|parts| parts.get_cost());
        assert_eq!(cost.ok(), Some(9), "the same cost means the same work");
        // The tolerance is wide for busy machines; a response without the work would be a thousand times faster.
        assert!(unknown * 3 > known && known * 3 > unknown, "known {known:?}, unknown {unknown:?}");
    }

    fn fastest(times: Vec<Duration>) -> Duration {
        times.into_iter().min().unwrap_or(Duration::ZERO)
    }

    #[test]
    fn without_a_hash_no_password_is_right() {
        assert_eq!(quick().check("NobodyHasThisPassword", None), PasswordCheck::Wrong);
        assert_eq!(quick().check("x", Some(&PasswordHash("nonsense".to_owned()))), PasswordCheck::Wrong);
    }
}
