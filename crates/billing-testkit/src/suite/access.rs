//! Administrators, keys, sessions, tokens and secrets.

use billing_domain::access::{
    AdminSession, Administrator, ApiKey, CodeSource, KnownAddresses, PasswordHash, Role, Scope, Scopes, SealedSecret,
    SecondFactor, SecretDigest, SecretPurpose,
};
use billing_domain::ports::{Insertion, KeyUse, Store};
use billing_domain::refs::ApiKeyRef;
use uuid::Uuid;

use super::{all, done, key_of_token, later, long_ago, page, read, token_of, world, write};
use crate::{FreshIds, fixtures};

pub fn administrators_and_keys_come_back_with_every_field(store: &dyn Store) {
    let w = world(store);
    let administrator = fixtures::administrator(&FreshIds, w.org);
    let plain = fixtures::api_key(&FreshIds, w.org);
    let full = ApiKey {
        name: Some(fixtures::line("Zähler ✓")),
        scopes: Scopes::of(&[Scope::Read, Scope::UsageWrite]),
        last_used_at: Some(later(1)),
        expires_at: Some(later(2)),
        successor: Some(plain.api_key_ref),
        ..fixtures::api_key(&FreshIds, w.org)
    };
    let none = ApiKey { scopes: Scopes::of(&[]), ..fixtures::api_key(&FreshIds, w.org) };
    write(store, |tx| {
        done(tx.insert_administrator(&administrator))?;
        [&plain, &full, &none].into_iter().try_for_each(|key| done(tx.insert_api_key(key)))
    });
    read(store, |tx| {
        assert_eq!(tx.administrator(administrator.admin_ref)?.as_ref(), Some(&administrator));
        assert_eq!(tx.administrator_by_email(administrator.email.as_str())?.as_ref(), Some(&administrator));
        assert_eq!(tx.administrator_by_email("nobody@example.com")?, None);
        for key in [&plain, &full, &none] {
            assert_eq!(key_of_token(tx, w.org, key.api_key_ref, Uuid::nil())?.as_ref(), Some(key));
            assert_eq!(tx.api_key_by_name(&key.api_key)?.as_ref(), Some(key));
        }
        assert_eq!(tx.api_key_by_name("00000000000000000000")?, None);
        Ok(())
    });
}

pub fn an_e_mail_is_taken_in_every_organization(store: &dyn Store) {
    let (one, other) = (world(store), world(store));
    let administrator = fixtures::administrator(&FreshIds, one.org);
    let mut twin = fixtures::administrator(&FreshIds, other.org);
    twin.email = administrator.email.clone();
    write(store, |tx| done(tx.insert_administrator(&administrator)));
    assert_eq!(write(store, |tx| tx.insert_administrator(&twin)), Insertion::Taken("email"));
    assert_eq!(read(store, |tx| tx.administrator(twin.admin_ref)), None);
    assert_eq!(read(store, |tx| tx.administrator_by_email(administrator.email.as_str())), Some(administrator.clone()));
}

pub fn a_log_in_name_is_taken_in_every_organization(store: &dyn Store) {
    let (one, other) = (world(store), world(store));
    let key = fixtures::api_key(&FreshIds, one.org);
    let twin = ApiKey { api_key: key.api_key.clone(), ..fixtures::api_key(&FreshIds, other.org) };
    write(store, |tx| done(tx.insert_api_key(&key)));
    assert_eq!(write(store, |tx| tx.insert_api_key(&twin)), Insertion::Taken("api_key"));
    assert_eq!(read(store, |tx| tx.api_key_by_name(&key.api_key)), Some(key.clone()));
}

pub fn an_organizations_name_is_taken_once(store: &dyn Store) {
    let organization = fixtures::organization(&FreshIds);
    let mut twin = fixtures::organization(&FreshIds);
    twin.name = organization.name.clone();
    write(store, |tx| done(tx.insert_organization(&organization)));
    assert_eq!(write(store, |tx| tx.insert_organization(&twin)), Insertion::Taken("name"));
    read(store, |tx| {
        assert_eq!(tx.organization(twin.id)?, None);
        assert_eq!(tx.organization_by_name(&organization.name)?.as_ref(), Some(&organization));
        assert_eq!(tx.organization_by_name(&fixtures::line("no such name"))?, None);
        Ok(())
    });
    let w = world(store);
    write(store, |tx| tx.set_default_entity(w.org, &w.entity.entity_ref, later(1)));
    let default = read(store, |tx| tx.organization(w.org)).and_then(|organization| organization.default_entity);
    assert_eq!(default, Some(w.entity.entity_ref));
}

pub fn administrators_of_an_organization_are_listed_by_e_mail(store: &dyn Store) {
    let (w, other) = (world(store), world(store));
    let (mut b, mut a) = (fixtures::administrator(&FreshIds, w.org), fixtures::administrator(&FreshIds, w.org));
    b.email = fixtures::line(&format!("b-{}", b.email));
    a.email = fixtures::line(&format!("a-{}", a.email));
    a.disabled_at = Some(later(1));
    let foreign = fixtures::administrator(&FreshIds, other.org);
    write(store, |tx| [&b, &a, &foreign].into_iter().try_for_each(|row| done(tx.insert_administrator(row))));
    assert_eq!(read(store, |tx| tx.administrators(w.org)), [a.clone(), b.clone()]);
    assert_eq!(write(store, |tx| tx.hold_administrators(w.org)), [a, b]);
}

pub fn an_administrator_has_the_role_they_were_made_with(store: &dyn Store) {
    let w = world(store);
    for role in Role::ALL {
        let made = Administrator {
            role,
            one_time_until: Some(later(5)),
            second_factor: SecondFactor::Enrolled(SealedSecret(vec![7; 40])),
            known_addresses: KnownAddresses::new([SecretDigest([5; 32])]),
            ..fixtures::administrator(&FreshIds, w.org)
        };
        write(store, |tx| done(tx.insert_administrator(&made)));
        assert_eq!(read(store, |tx| tx.administrator(made.admin_ref)), Some(made));
    }
}

pub fn an_administrator_who_is_changed_keeps_the_rest(store: &dyn Store) {
    let w = world(store);
    let (before, other) = (fixtures::administrator(&FreshIds, w.org), fixtures::administrator(&FreshIds, w.org));
    write(store, |tx| [&before, &other].into_iter().try_for_each(|row| done(tx.insert_administrator(row))));
    let source = CodeSource {
        secret: SealedSecret(vec![0, 1, 255]),
        since: later(2),
        last_step: 58_000_000,
        recovery: vec![SecretDigest([1; 32]), SecretDigest([2; 32])],
        failed_codes: 7,
    };
    let changed = Administrator {
        role: Role::Finance,
        password_hash: PasswordHash("another".to_owned()),
        one_time_until: Some(later(4)),
        second_factor: SecondFactor::On(source.clone()),
        known_addresses: KnownAddresses::new([SecretDigest([3; 32]), SecretDigest([4; 32])]),
        disabled_at: Some(later(3)),
        ..before.clone()
    };
    write(store, |tx| {
        assert_eq!(tx.hold_administrator(before.email.as_str())?.as_ref(), Some(&before));
        assert_eq!(tx.hold_administrator("nobody@example.com")?, None);
        tx.update_administrator(&Administrator { email: other.email.clone(), created_at: later(9), ..changed.clone() })
    });
    assert_eq!(read(store, |tx| tx.administrator(before.admin_ref)), Some(changed.clone()));
    assert_eq!(read(store, |tx| tx.administrator(other.admin_ref)), Some(other.clone()));
    let without_codes = SecondFactor::On(CodeSource { recovery: Vec::new(), ..source.clone() });
    for second_factor in [without_codes, SecondFactor::Enrolled(source.secret), SecondFactor::Off] {
        let changed = Administrator { second_factor, ..changed.clone() };
        write(store, |tx| tx.update_administrator(&changed));
        assert_eq!(read(store, |tx| tx.administrator(before.admin_ref)), Some(changed));
    }
    write(store, |tx| tx.update_administrator(&before));
    assert_eq!(read(store, |tx| tx.administrator(before.admin_ref)), Some(before.clone()));
    let absent = fixtures::administrator(&FreshIds, w.org);
    write(store, |tx| tx.update_administrator(&absent));
    assert_eq!(read(store, |tx| tx.administrator(absent.admin_ref)), None);
}

pub fn all_sessions_of_an_administrator_end_together(store: &dyn Store) {
    let w = world(store);
    let (one, other) = (fixtures::administrator(&FreshIds, w.org), fixtures::administrator(&FreshIds, w.org));
    let (first, second) = (fixtures::session(&FreshIds, &one), fixtures::session(&FreshIds, &one));
    let kept = fixtures::session(&FreshIds, &other);
    write(store, |tx| {
        [&one, &other].into_iter().try_for_each(|row| done(tx.insert_administrator(row)))?;
        [&first, &second, &kept].into_iter().try_for_each(|session| tx.insert_session(session))
    });
    write(store, |tx| tx.delete_sessions(one.admin_ref, Some(second.digest)));
    assert_eq!(read(store, |tx| tx.sessions(one.admin_ref)), std::slice::from_ref(&second));
    write(store, |tx| tx.delete_sessions(one.admin_ref, None));
    read(store, |tx| {
        assert_eq!((tx.session(first.digest)?, tx.session(second.digest)?), (None, None));
        assert_eq!(tx.session(kept.digest)?.as_ref(), Some(&kept));
        Ok(())
    });
    write(store, |tx| tx.delete_sessions(one.admin_ref, None));
}

pub fn the_sessions_of_an_administrator_are_listed_and_end_by_their_reference(store: &dyn Store) {
    let w = world(store);
    let (one, other) = (fixtures::administrator(&FreshIds, w.org), fixtures::administrator(&FreshIds, w.org));
    let begun = |administrator, seconds| AdminSession {
        created_at: later(seconds),
        user_agent: Some(fixtures::line("Browser/1.0 (machine)")),
        ..fixtures::session(&FreshIds, administrator)
    };
    let (older, newer, foreign) = (begun(&one, 1), begun(&one, 2), begun(&other, 3));
    write(store, |tx| {
        [&one, &other].into_iter().try_for_each(|row| done(tx.insert_administrator(row)))?;
        [&older, &newer, &foreign].into_iter().try_for_each(|session| tx.insert_session(session))
    });
    assert_eq!(read(store, |tx| tx.sessions(one.admin_ref)), [newer.clone(), older.clone()]);
    assert!(!write(store, |tx| tx.delete_session_of(one.admin_ref, foreign.session_ref)));
    assert!(write(store, |tx| tx.delete_session_of(one.admin_ref, newer.session_ref)));
    assert!(!write(store, |tx| tx.delete_session_of(one.admin_ref, newer.session_ref)));
    assert_eq!(read(store, |tx| tx.sessions(one.admin_ref)), [older]);
    assert_eq!(read(store, |tx| tx.sessions(other.admin_ref)), [foreign]);
}

pub fn a_key_that_gives_way_keeps_the_rest(store: &dyn Store) {
    let w = world(store);
    let (key, successor) = (fixtures::api_key(&FreshIds, w.org), fixtures::api_key(&FreshIds, w.org));
    write(store, |tx| [&key, &successor].into_iter().try_for_each(|key| done(tx.insert_api_key(key))));
    let mut old = key.clone();
    old.rotate_to(successor.api_key_ref, later(9));
    write(store, |tx| {
        assert_eq!(tx.hold_api_key(w.org, key.api_key_ref)?.as_ref(), Some(&key));
        tx.update_api_key(&ApiKey { name: Some(fixtures::line("another")), ..old.clone() })
    });
    assert_eq!(read(store, |tx| tx.api_key_by_name(&key.api_key)), Some(old));
    assert_eq!(read(store, |tx| tx.api_key_by_name(&successor.api_key)), Some(successor.clone()));
    let absent = fixtures::api_key(&FreshIds, w.org);
    write(store, |tx| {
        assert_eq!(tx.hold_api_key(w.org, absent.api_key_ref)?, None);
        tx.update_api_key(&absent)
    });
    assert_eq!(read(store, |tx| tx.api_key_by_name(&absent.api_key)), None);
}

pub fn api_keys_are_listed_by_creation_then_by_reference(store: &dyn Store) {
    let w = world(store);
    let made = |seconds| ApiKey { created_at: later(seconds), ..fixtures::api_key(&FreshIds, w.org) };
    // Three have the same creation time but are stored in a different order. One is older.
    let (a, b, c, older) = (made(5), made(5), made(5), made(1));
    write(store, |tx| [&b, &older, &c, &a].into_iter().try_for_each(|key| done(tx.insert_api_key(key))));
    let refs = |keys: &[ApiKey]| keys.iter().map(|key| key.api_key_ref).collect::<Vec<ApiKeyRef>>();
    let listed = read(store, |tx| tx.api_keys(w.org, all()));
    assert_eq!(refs(&listed.items), [older.api_key_ref, a.api_key_ref, b.api_key_ref, c.api_key_ref]);
    let second = read(store, |tx| tx.api_keys(w.org, page(3, 1)));
    assert_eq!((refs(&second.items), second.total), (vec![c.api_key_ref], 4));
    let beyond = read(store, |tx| tx.api_keys(w.org, page(3, 2)));
    assert_eq!((refs(&beyond.items), beyond.total), (vec![], 4));
}

pub fn a_key_remembers_its_last_use_and_can_be_deleted_once(store: &dyn Store) {
    let w = world(store);
    let (key, other) = (fixtures::api_key(&FreshIds, w.org), fixtures::api_key(&FreshIds, w.org));
    write(store, |tx| {
        done(tx.insert_api_key(&key))?;
        done(tx.insert_api_key(&other))
    });
    let used = |at| KeyUse { organization: w.org, api_key_ref: key.api_key_ref, at };
    let absent = KeyUse { api_key_ref: fixtures::api_key(&FreshIds, w.org).api_key_ref, ..used(later(8)) };
    write(store, |tx| tx.touch_api_keys(&[used(later(7)), absent], later(70)));
    // Another server stores an earlier time.
    write(store, |tx| tx.touch_api_keys(&[used(later(6))], later(80)));
    let touched = ApiKey { last_used_at: Some(later(7)), updated_at: later(70), ..key.clone() };
    assert_eq!(read(store, |tx| key_of_token(tx, w.org, key.api_key_ref, Uuid::nil())), Some(touched));
    let stored = read(store, |tx| tx.api_key_by_name(&key.api_key));
    assert_eq!(write(store, |tx| tx.delete_api_key(w.org, key.api_key_ref)), stored);
    assert_eq!(write(store, |tx| tx.delete_api_key(w.org, key.api_key_ref)), None);
    read(store, |tx| {
        assert_eq!(key_of_token(tx, w.org, key.api_key_ref, Uuid::nil())?, None);
        assert_eq!(tx.api_key_by_name(&key.api_key)?, None);
        assert_eq!(tx.api_keys(w.org, all())?.items, std::slice::from_ref(&other));
        Ok(())
    });
}

pub fn sessions_begin_are_used_and_end(store: &dyn Store) {
    let w = world(store);
    let administrator = fixtures::administrator(&FreshIds, w.org);
    let (session, other) = (fixtures::session(&FreshIds, &administrator), fixtures::session(&FreshIds, &administrator));
    write(store, |tx| {
        done(tx.insert_administrator(&administrator))?;
        tx.insert_session(&session)?;
        tx.insert_session(&other)
    });
    assert_eq!(read(store, |tx| tx.session(session.digest)), Some(session.clone()));
    // The store finds the session although it has expired. The last use was more than eight hours ago.
    write(store, |tx| tx.touch_session(session.digest, later(9 * 3600)));
    write(store, |tx| tx.confirm_session(session.digest, later(60)));
    let touched = read(store, |tx| tx.session(session.digest)).expect("a session");
    assert_eq!(touched.confirmed_at, later(60));
    assert_eq!((touched.last_seen_at, touched.created_at), (later(9 * 3600), session.created_at));
    for _ in 0..2 {
        write(store, |tx| tx.delete_session(session.digest));
        assert_eq!(read(store, |tx| tx.session(session.digest)), None);
    }
    assert_eq!(read(store, |tx| tx.session(other.digest)), Some(other.clone()));
}

pub fn purged_sessions_are_those_that_began_before(store: &dyn Store) {
    let w = world(store);
    let administrator = fixtures::administrator(&FreshIds, w.org);
    // The limit is so old that purging doesn't affect the rows of other tests.
    let limit = long_ago();
    let begun = |seconds| {
        let created_at = limit.plus_seconds(seconds);
        AdminSession { created_at, last_seen_at: later(0), ..fixtures::session(&FreshIds, &administrator) }
    };
    let (before, exactly, after) = (begun(-1), begun(0), begun(1));
    write(store, |tx| {
        done(tx.insert_administrator(&administrator))?;
        [&before, &exactly, &after].into_iter().try_for_each(|session| tx.insert_session(session))
    });
    write(store, |tx| tx.purge_sessions(limit));
    read(store, |tx| {
        assert_eq!(tx.session(before.digest)?, None);
        assert_eq!(tx.session(exactly.digest)?.as_ref(), Some(&exactly));
        assert_eq!(tx.session(after.digest)?.as_ref(), Some(&after));
        Ok(())
    });
}

pub fn a_token_can_be_ended_twice_and_forgotten_once_expired(store: &dyn Store) {
    let (w, limit) = (world(store), long_ago());
    let key = fixtures::api_key(&FreshIds, w.org);
    write(store, |tx| done(tx.insert_api_key(&key)));
    let is_ended = |token| read(store, |tx| key_of_token(tx, w.org, key.api_key_ref, token)).is_none();
    let (expired, live) = (Uuid::now_v7(), Uuid::now_v7());
    for token in [expired, live] {
        assert!(!is_ended(token));
    }
    for _ in 0..2 {
        write(store, |tx| {
            tx.revoke_token(expired, limit.plus_seconds(-1))?;
            tx.revoke_token(live, limit)
        });
        assert!(is_ended(expired));
    }
    write(store, |tx| tx.purge_revoked_tokens(limit));
    assert!(!is_ended(expired));
    assert!(is_ended(live));
}

pub fn the_keys_of_several_tokens_come_in_the_order_of_the_tokens(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let [first, second, deleted] = [(); 3].map(|()| fixtures::api_key(&FreshIds, w.org));
    let (live, ended) = (Uuid::now_v7(), Uuid::now_v7());
    write(store, |tx| {
        for key in [&first, &second, &deleted] {
            done(tx.insert_api_key(key))?;
        }
        tx.delete_api_key(w.org, deleted.api_key_ref)?;
        tx.revoke_token(ended, later(60))
    });
    let tokens = [
        token_of(w.org, second.api_key_ref, live),
        token_of(w.org, first.api_key_ref, ended),
        token_of(w.org, first.api_key_ref, Uuid::now_v7()),
        token_of(w.org, deleted.api_key_ref, Uuid::now_v7()),
        token_of(stranger.org, first.api_key_ref, Uuid::now_v7()),
        token_of(w.org, second.api_key_ref, Uuid::now_v7()),
    ];
    let keys = read(store, |tx| tx.keys_of_tokens(&tokens));
    assert_eq!(keys, [Some(second.clone()), None, Some(first), None, None, Some(second)]);
    assert_eq!(read(store, |tx| tx.keys_of_tokens(&[])), []);
}

pub fn signing_secrets_come_newest_first_by_purpose(store: &dyn Store) {
    let made = |seconds| {
        let mut secret = fixtures::signing_secret(&FreshIds);
        secret.created_at = later(seconds);
        secret.purpose = SecretPurpose::SessionCookie;
        secret
    };
    let (oldest, newest, middle) = (made(1), made(3), made(2));
    let other_purpose = fixtures::signing_secret(&FreshIds);
    write(store, |tx| {
        [&oldest, &newest, &middle, &other_purpose].into_iter().try_for_each(|s| done(tx.insert_signing_secret(s)))
    });
    let mut twin = made(4);
    twin.kid = oldest.kid.clone();
    assert_eq!(write(store, |tx| tx.insert_signing_secret(&twin)), Insertion::Taken("kid"));
    // Other tests may store secrets concurrently.
    let mut stored = read(store, |tx| tx.signing_secrets(SecretPurpose::SessionCookie));
    stored.retain(|secret| [&oldest, &newest, &middle, &other_purpose, &twin].iter().any(|mine| mine.kid == secret.kid));
    assert_eq!(stored, [newest.clone(), middle.clone(), oldest.clone()]);
    assert!(read(store, |tx| tx.signing_secrets(SecretPurpose::BearerToken)).contains(&other_purpose));
    for _ in 0..2 {
        write(store, |tx| tx.delete_signing_secret(&middle.kid));
    }
    let left = read(store, |tx| tx.signing_secrets(SecretPurpose::SessionCookie));
    assert_eq!([&newest, &middle, &oldest].map(|secret| left.contains(secret)), [true, false, true]);
}
