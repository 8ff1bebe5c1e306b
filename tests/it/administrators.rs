//! Administrators on the command line: creating, listing and changing them.

use acceptance::server::{ADMIN_EMAIL, ADMIN_PASSWORD};
use acceptance::{Answer, Client, Database, Server, binary, on_sqlite};
use serde_json::json;

on_sqlite!(
    who_is_disabled_is_out_at_once_and_refused_like_a_wrong_password,
    a_new_password_is_shown_once_and_ends_what_the_old_one_began,
    a_hash_of_another_cost_is_renewed_by_the_next_log_in,
    administrators_are_listed_with_what_they_may,
    what_names_no_administrator_is_refused,
);

fn log_in(server: &Server, email: &str, password: &str) -> Answer {
    Client::anonymous(server).post("/auth/login", &json!({"email": email, "password": password}))
}

fn is_logged_in(admin: &Client) -> bool {
    let answer = admin.get("/auth/keys/list");
    assert!([200, 401].contains(&answer.status), "{}", answer.text);
    answer.status == 200
}

fn who_is_disabled_is_out_at_once_and_refused_like_a_wrong_password(database: &Database) {
    let server = Server::start(database);
    binary::succeed(database, &["admin", "create", "--organization", "default", "--email", "other@example.com"]);
    let (first, second) = (Client::admin(&server), Client::admin(&server));
    let key = first.generate_key(&json!({}));
    let mut wrong = log_in(&server, ADMIN_EMAIL, "not the password of anyone");

    for _ in 0..2 {
        let stated = binary::succeed(database, &["admin", "disable", "--email", "Admin@example.com"]);
        assert!(stated.contains("Disabled administrator admin@example.com"), "{stated}");
        assert!(!is_logged_in(&first) && !is_logged_in(&second));
    }
    let mut refused = log_in(&server, ADMIN_EMAIL, ADMIN_PASSWORD);
    for answer in [&mut wrong, &mut refused] {
        assert_eq!((answer.status, answer.text_of("code").as_str()), (401, "invalid_credentials"));
        answer.body.as_object_mut().expect("a problem document").remove("request_id");
    }
    assert_eq!(refused.body, wrong.body);
    assert_eq!(Client::key(&server, &key).get("/api/customers/filter").status, 200, "API keys belong to no administrator");

    binary::succeed(database, &["admin", "enable", "--email", ADMIN_EMAIL]);
    assert!(!is_logged_in(&first), "ended sessions stay ended");
    assert!(is_logged_in(&Client::admin(&server)));
}

fn a_new_password_is_shown_once_and_ends_what_the_old_one_began(database: &Database) {
    let server = Server::start(database);
    let before = Client::admin(&server);
    let stated = binary::succeed(database, &["admin", "reset-password", "--email", ADMIN_EMAIL]);
    let password = stated.lines().find_map(|line| line.strip_prefix("Password (shown only once): ")).expect("a password");
    assert_eq!(stated.matches(password).count(), 1, "{stated}");
    assert!(!is_logged_in(&before));
    assert_eq!(log_in(&server, ADMIN_EMAIL, ADMIN_PASSWORD).status, 401);
    assert!(is_logged_in(&Client::log_in_admin(&server, ADMIN_EMAIL, password)));

    binary::succeed(database, &["admin", "disable", "--email", ADMIN_EMAIL]);
    let given = ["admin", "reset-password", "--email", ADMIN_EMAIL, "--password", "another pass phrase"];
    let stated = binary::succeed(database, &given);
    assert!(stated.contains("stays disabled") && !stated.contains("another pass phrase"), "{stated}");
    assert_eq!(log_in(&server, ADMIN_EMAIL, "another pass phrase").status, 401);
    binary::succeed(database, &["admin", "enable", "--email", ADMIN_EMAIL]);
    assert_eq!(log_in(&server, ADMIN_EMAIL, "another pass phrase").status, 200);
}

fn a_hash_of_another_cost_is_renewed_by_the_next_log_in(database: &Database) {
    let server = Server::start(database);
    let password = "another pass phrase";
    let given = ["admin", "create", "--organization", "default", "--email", "other@example.com", "--password", password];
    binary::succeed(database, &given);
    let costs = || {
        let column = "substr(password_hash, 1, 7)";
        database.ask(&format!("SELECT {column} FROM administrators ORDER BY email = '{ADMIN_EMAIL}' DESC"))
    };
    assert_eq!(costs(), ["$2b$10$", "$2b$12$"]);
    let sessions: Vec<Client> = std::thread::scope(|scope| {
        let log_in = || Client::log_in_admin(&server, "other@example.com", password);
        let log_ins = [scope.spawn(log_in), scope.spawn(log_in)];
        log_ins.map(|log_in| log_in.join().expect("a log-in")).into()
    });
    assert_eq!(costs(), ["$2b$10$", "$2b$10$"]);
    assert!(sessions.iter().all(is_logged_in));
}

fn administrators_are_listed_with_what_they_may(database: &Database) {
    let _server = Server::start(database);
    binary::succeed(database, &["organization", "create", "other"]);
    for (organization, email) in [("default", "z@example.com"), ("default", "Aa@example.com"), ("other", "b@example.com")] {
        binary::succeed(database, &["admin", "create", "--organization", organization, "--email", email]);
    }
    binary::succeed(database, &["admin", "disable", "--email", "z@example.com"]);
    let listed = |arguments: &[&str]| {
        let stated = binary::succeed(database, &[&["admin", "list"], arguments].concat());
        let rows =
            stated.lines().map(|line| (line.split_whitespace().next().unwrap_or_default().to_owned(), line.contains("disabled")));
        rows.collect::<Vec<_>>()
    };
    let row = |email: &str, disabled| (email.to_owned(), disabled);
    let default = [row("aa@example.com", false), row(ADMIN_EMAIL, false), row("z@example.com", true)];
    assert_eq!(listed(&[]), default);
    assert_eq!(listed(&["--organization", "other"]), [row("b@example.com", false)]);
}

fn what_names_no_administrator_is_refused(database: &Database) {
    let refused = |arguments: &[&str], word: &str| {
        let finished = binary::run(arguments, &[("USAGE_BILLING_DATABASE_URL", database.url()), ("RUST_LOG", "error")]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{arguments:?}: {finished:?}");
        assert!(finished.stderr.contains(word) && finished.made().is_empty(), "{arguments:?}: {}", finished.stderr);
    };
    let before_a_start: [&[&str]; 2] = [&["admin", "list"], &["admin", "disable", "--email", ADMIN_EMAIL]];
    for arguments in before_a_start {
        refused(arguments, if database.url().starts_with("sqlite") { "no database" } else { "migrate" });
    }
    let server = Server::start(database);
    for command in ["disable", "enable", "reset-password"] {
        refused(&["admin", command, "--email", "nobody@example.com"], "the administrator does not exist");
        refused(&["admin", command], "--email");
    }
    refused(&["admin", "list", "--organization", "nobody"], "the organization does not exist");
    refused(&["admin", "reset-password", "--email", ADMIN_EMAIL, "--password", "short"], "12 to 72 bytes");
    for email in ["", "admin", "@example.com", "a b@example.com", "a@b@example.com", "a@example.com,b@example.com"] {
        refused(&["admin", "create", "--organization", "default", "--email", email], "must be an e-mail address");
    }
    assert!(is_logged_in(&Client::admin(&server)), "the password is unchanged");
}
