//! Secrets from files, and settings that exclude each other.

use super::*;

/// Writes a secret to a file, and returns the settings that name the file with this flag.
fn with_file(flag: &str, content: &str, more: &[&str]) -> Result<ServeSettings, clap::Error> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("secret");
    std::fs::write(&path, content).expect("a file");
    let path = path.display().to_string();
    let arguments = ["usage-billing", flag, path.as_str()].into_iter().chain(more.iter().copied());
    Cli::try_parse_from(arguments).map(|cli| cli.serve)
}

fn shown(secret: Option<SecretString>) -> Option<String> {
    secret.map(|secret| secret.expose_secret().to_owned())
}

#[test]
fn a_file_has_a_secret_without_one_line_break() {
    let rows = [("secret", "secret"), ("secret\n", "secret"), ("secret\r\n", "secret"), (" a \n\n", " a \n")];
    for (content, expected) in rows {
        let settings = with_file("--admin-password-file", content, &[]).expect("settings");
        assert_eq!(shown(settings.admin_password().expect("a password")).as_deref(), Some(expected), "{content:?}");
    }
    let settings = with_file("--database-url-file", "postgres://a:b@c/d\n", &[]).expect("settings");
    assert_eq!(settings.store.database_url().expect("a URL").expose_secret(), "postgres://a:b@c/d");
    let settings = with_file("--jwt-secrets-file", "new,old\n", &[]).expect("settings");
    let secrets = settings.jwt_secrets().expect("secrets");
    assert_eq!(secrets.iter().map(|secret| secret.expose_secret()).collect::<Vec<_>>(), ["new", "old"]);
}

#[test]
fn without_a_setting_the_database_is_a_file_and_the_other_secrets_are_missing() {
    let settings = Cli::try_parse_from(["usage-billing"]).expect("settings").serve;
    assert_eq!(settings.store.database_url().expect("a URL").expose_secret(), DEFAULT_DATABASE_URL);
    assert_eq!(shown(settings.admin_password().expect("no password")), None);
    assert!(settings.jwt_secrets().expect("no secrets").is_empty());
}

#[test]
fn a_secret_and_its_file_exclude_each_other_unless_the_secret_is_empty() {
    for flag in ["--database-url", "--admin-password", "--jwt-secrets"] {
        let result = |value: &str| {
            let settings = with_file(&format!("{flag}-file"), "of the file", &[flag, value]).expect("settings");
            match flag {
                "--database-url" => settings.store.database_url().map(Some),
                "--admin-password" => settings.admin_password(),
                _ => settings.jwt_secrets().map(|secrets| secrets.into_iter().next()),
            }
        };
        let error = result("topsecret").expect_err("both are set").to_string();
        assert!(error.starts_with(&format!("{flag} and {flag}-file are both set")), "{error}");
        assert!(!error.contains("topsecret"), "{error}");
        assert_eq!(shown(result("").expect("an empty setting")).as_deref(), Some("of the file"), "{flag}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_its_setting() {
    let error = Cli::try_parse_from(["usage-billing", "--jwt-secrets-file", "/nowhere/secret"]).expect_err("no such file");
    let stated = error.to_string();
    assert!(stated.contains("--jwt-secrets-file") && stated.contains("cannot read \"/nowhere/secret\""), "{stated}");
    let long = with_file("--admin-password-file", &"x".repeat(MAX_SECRET_FILE_BYTES + 1), &[]).expect_err("a long file");
    assert!(long.to_string().contains("must have at most 65536 bytes"), "{long}");
}

#[test]
fn the_e_mail_address_of_an_administrator_is_ascii() {
    assert!(email_address("billing@xn--bcher-kva.example").is_ok());
    // The first letter of the domain is Cyrillic.
    for address in ["billing@\u{430}cme.example", "billing@b\u{fc}cher.example"] {
        let reason = email_address(address).expect_err("not ASCII");
        assert!(reason.contains("ASCII") && reason.contains("punycode"), "{reason}");
    }
    assert_eq!(email_address("nobody").expect_err("no address"), "must be an e-mail address, such as billing@example.com");
}
