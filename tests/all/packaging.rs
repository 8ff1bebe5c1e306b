//! Release artifacts: the container image, compose file, chart, systemd unit, dashboard, alert rules and workflows refer only to
//! existing names, and the linters of each find no problem. Building the image needs Docker and installing the chart needs a cluster, so
//! only the release workflow does that.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use acceptance::server::free_port;
use acceptance::{Client, Database, Server, binary, catalog, tools};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the words of a text with this prefix.
fn words<'t>(text: &'t str, beginning: &str) -> BTreeSet<&'t str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
    let words = text.split(|c| !is_of_name(c)).filter(|word| word.starts_with(beginning));
    words.map(|word| word.trim_end_matches('.')).collect()
}

/// Returns every file below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let entries = entries.map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn what_is_set_is_a_setting() {
    let help = binary::run(&["serve", "--help"], &[]).stdout;
    let settings = words(&help, "USAGE_BILLING_");
    assert!(settings.len() > 10, "{help}");
    let mut named = 0;
    for path in files(&root().join("packaging")) {
        let text = fs::read_to_string(&path).expect("a string");
        for name in words(&text, "USAGE_BILLING_") {
            assert!(settings.contains(name), "{} sets {name}, which is not a setting", path.display());
            named += 1;
        }
    }
    assert!(named > 10, "{named}");
}

#[test]
fn what_a_chart_is_told_is_among_its_values() {
    let text = read("packaging/helm/usage-billing/values.yaml");
    let mut values: BTreeSet<String> = BTreeSet::new();
    let mut above: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let Some((name, _)) = line.trim().split_once(':') else { continue };
        above.truncate((line.len() - line.trim_start().len()) / 2);
        above.push(name);
        values.insert(above.join("."));
    }
    let mut used: BTreeSet<String> = BTreeSet::new();
    for path in files(&root().join("packaging/helm/usage-billing/templates")) {
        let text = fs::read_to_string(&path).expect("a string");
        used.extend(
            words(&text.replace(".Values.", " Values."), "Values.").iter().map(|word| word["Values.".len()..].to_owned()),
        );
    }
    let is_used = |value: &String| used.iter().any(|used| value == used || value.starts_with(&format!("{used}.")));
    let holds_used = |value: &String| used.iter().any(|used| used.starts_with(&format!("{value}.")));
    assert_eq!(
        used.iter().filter(|used| !values.contains(*used)).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "a template uses an undefined value"
    );
    let idle: Vec<&String> = values.iter().filter(|value| !is_used(value) && !holds_used(value)).collect();
    assert!(idle.is_empty(), "unused values: {idle:?}");
}

#[test]
fn the_dashboard_and_the_alert_rules_use_exported_metrics() {
    let database = Database::sqlite();
    let (server, client) = catalog::stage(&database);
    catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    client.post("/api/usage/event", &catalog::event(catalog::ACME, 1)).ok();
    // A refused event, because its metric does not exist before.
    assert_eq!(client.post("/api/usage/event", &catalog::event("nobody", 1)).status, 422);
    // On a busy machine, the first answers may lack the count of contracts, for which a request waits only two seconds.
    let mut answers = (0..100).map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        Client::anonymous(&server).get("/metrics").text
    });
    let reported = answers.find(|reported| reported.contains("\nusage_billing_contracts_awaiting_issue ")).expect("all metrics");
    let reported: BTreeSet<&str> = reported.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    let (dashboard, alerts) = (read("packaging/grafana-dashboard.json"), read("packaging/alerts.yaml"));
    let parsed: Value = serde_json::from_str(&dashboard).expect("JSON");
    assert!(parsed["panels"].as_array().is_some_and(|panels| panels.len() > 20));
    let (drawn, watched) = (words(&dashboard, "usage_billing_"), words(&alerts, "usage_billing_"));
    assert!(drawn.len() >= 17 && watched.len() >= 8, "{drawn:?} {watched:?}");
    for metric in drawn.union(&watched) {
        assert!(reported.contains(metric), "{metric} isn't exported: {reported:?}");
    }
}

#[test]
fn each_alert_rule_says_what_to_do() {
    let alerts = read("packaging/alerts.yaml");
    let rules: Vec<&str> = alerts.split("- alert: ").skip(1).collect();
    assert!(rules.len() >= 7, "{alerts}");
    for rule in rules {
        for part in ["expr:", "for:", "severity:", "summary:", "description:"] {
            let lines = rule.lines().filter(|line| line.trim_start().starts_with(part));
            assert_eq!(lines.count(), 1, "{part} of {rule}");
        }
    }
}

#[test]
fn the_version_is_the_same_in_each_artifact() {
    let version = env!("CARGO_PKG_VERSION");
    let chart = read("packaging/helm/usage-billing/Chart.yaml");
    for line in [format!("version: {version}"), format!("appVersion: {version}")] {
        assert!(chart.lines().any(|of_chart| of_chart == line), "{line} isn't in {chart}");
    }
    let compose = read("packaging/compose.yaml");
    assert!(compose.contains(&format!("image: usage-billing:{version}\n")), "{compose}");
    for (file, line) in [
        ("python/pyproject.toml", format!("\nversion = \"{version}\"\n")),
        ("typescript/package.json", format!("\n  \"version\": \"{version}\",\n")),
    ] {
        let text = read(&format!("packaging/clients/{file}"));
        assert!(text.contains(&line), "{line} isn't in {text}");
    }
}

#[test]
fn the_check_of_a_release_bills_and_prints_with_its_programs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let listen = format!("127.0.0.1:{}", free_port());
    let mut check = Command::new(root().join("scripts/try-release"));
    check.arg(binary::path()).current_dir(directory.path()).env("BASE", format!("http://{listen}"));
    assert_eq!(tools::succeed(check.env("USAGE_BILLING_LISTEN", listen)), "try-release: UB-INV-1 was billed and printed.\n");
}

#[test]
fn the_compose_file_and_the_chart_of_a_release_have_the_image_of_a_registry() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    tools::succeed(Command::new(root().join("scripts/with-image")).arg("ghcr.io/owner/usage-billing").arg(directory.path()));
    let compose = fs::read_to_string(path("compose.yaml")).expect("a file");
    let image = format!("    image: ghcr.io/owner/usage-billing:{}\n", env!("CARGO_PKG_VERSION"));
    assert!(compose.contains(&image) && !compose.contains("build:") && !compose.contains("Dockerfile"), "{compose}");
    tools::succeed(tools::python("check-jsonschema").args(["--builtin-schema", "vendor.compose-spec"]).arg(path("compose.yaml")));
    let values = fs::read_to_string(path("usage-billing/values.yaml")).expect("a file");
    assert!(values.contains("\n  repository: ghcr.io/owner/usage-billing\n"), "{values}");
}

#[test]
fn the_chart_takes_secrets_volumes_and_a_digest_and_its_pods_have_no_token() {
    let template = |name: &str| read(&format!("packaging/helm/usage-billing/templates/{name}"));
    let deployment = template("deployment.yaml");
    for part in [
        "automountServiceAccountToken: false",
        "serviceAccountName: {{ include \"usage-billing.serviceAccount\" . }}",
        "image: {{ include \"usage-billing.image\" . | quote }}",
        "toYaml . | nindent 12",
        "with .Values.extraEnv }}",
        "with .Values.extraEnvFrom }}",
        "with .Values.extraVolumes }}",
        "with .Values.extraVolumeMounts }}",
        "name: {{ .Values.database.existingSecret }}",
        "with .Values.jwtSecrets.existingSecret }}",
    ] {
        assert!(deployment.contains(part), "{part} isn't in {deployment}");
    }
    assert!(template("_helpers.tpl").contains(r#"printf "%s@%s" .Values.image.repository .Values.image.digest"#));
    assert!(template("serviceaccount.yaml").contains("\nautomountServiceAccountToken: false\n"));
    let policy = template("networkpolicy.yaml");
    assert!(policy.starts_with("{{- if .Values.networkPolicy.enabled }}\n"), "{policy}");
    assert!(policy.contains("\nkind: NetworkPolicy\n"), "{policy}");
    let values = read("packaging/helm/usage-billing/values.yaml");
    let (_, of_policy) = values.split_once("\nnetworkPolicy:\n").expect("the values of the policy");
    assert!(of_policy.starts_with("  enabled: false\n"), "the policy is off by default: {of_policy}");
    // Every block that a template opens is closed, so that `helm` can at least parse it.
    for path in files(&root().join("packaging/helm/usage-billing/templates")) {
        let text = fs::read_to_string(&path).expect("a string");
        let actions: Vec<&str> = text.split("{{").skip(1).map(|rest| rest.trim_start_matches('-').trim_start()).collect();
        let count = |names: &[&str]| actions.iter().filter(|action| names.iter().any(|name| action.starts_with(name))).count();
        assert_eq!(count(&["if ", "with ", "range ", "define "]), count(&["end "]), "{}", path.display());
    }
}

#[test]
fn the_database_of_the_compose_file_is_on_an_internal_network_only() {
    let compose = read("packaging/compose.yaml");
    let (_, postgres) = compose.split_once("\n  postgres:\n").expect("the service postgres");
    let (postgres, networks) = postgres.split_once("\nnetworks:\n").expect("the networks");
    let (_, of_postgres) = postgres.split_once("    networks:\n").expect("the networks of postgres");
    assert!(of_postgres.starts_with("      - database\n") && !of_postgres.contains("- default"), "{postgres}");
    assert!(!postgres.contains("ports:"), "{postgres}");
    assert!(networks.starts_with("  database:\n    internal: true\n"), "{networks}");
}

#[test]
fn a_container_is_healthy_while_its_server_is_ready() {
    let dockerfile = read("packaging/Dockerfile");
    let (_, rest) = dockerfile.split_once("HEALTHCHECK").expect("a health check");
    let (_, command) = rest.split_once("CMD ").expect("the command of the health check");
    let (command, _) = command.split_once('\n').expect("the end of the line");
    let command: Vec<String> = serde_json::from_str(command).expect("a list");
    let check = |address: &str| {
        let mut run = Command::new(&command[0]);
        run.args(&command[1..]).env("USAGE_BILLING_LISTEN", address).status().expect("bash starts").success()
    };
    let database = Database::sqlite();
    let server = Server::start(&database);
    let address = server.address().to_owned();
    assert!(check(&address));
    server.kill_9();
    assert!(!check(&address));
}

#[test]
fn linters_find_nothing() {
    let root = root();
    let lint = |program: &str, arguments: &[&str]| {
        tools::succeed(tools::python(program).args(arguments).current_dir(&root));
    };
    lint("hadolint", &["packaging/Dockerfile"]);
    lint("check-jsonschema", &["--builtin-schema", "vendor.compose-spec", "packaging/compose.yaml"]);
    let workflows = files(&root.join(".github/workflows"));
    assert!(workflows.len() > 1);
    for workflow in &workflows {
        lint("check-jsonschema", &["--builtin-schema", "vendor.github-workflows", &workflow.display().to_string()]);
    }
    // `zizmor` also checks that actions are pinned to commits.
    lint("zizmor", &["--offline", "--no-progress", ".github/workflows"]);
    for workflow in &workflows {
        let text = fs::read_to_string(workflow).expect("a string");
        for action in text.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses: ")) {
            let commit = action.split_once('@').map(|(_, rest)| rest.split(' ').next().unwrap_or_default());
            let is_commit = |at: &str| at.len() == 40 && at.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(commit.is_some_and(is_commit), "{action} isn't pinned");
        }
    }
}

#[test]
fn the_unit_is_one_that_systemd_takes_and_exposes_little() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let unit = directory.path().join("usage-billing.service");
    let text =
        read("packaging/usage-billing.service").replace("/usr/local/bin/usage-billing", &binary::path().display().to_string());
    fs::write(&unit, text).expect("a file");
    let analyze = |arguments: &[&str]| Command::new("systemd-analyze").args(arguments).arg(&unit).output();
    let Ok(verified) = analyze(&["verify"]) else {
        return eprintln!("NOT TRIED: there is no systemd-analyze on this machine");
    };
    assert!(verified.status.success() && verified.stderr.is_empty(), "{}", String::from_utf8_lossy(&verified.stderr));
    let exposed = analyze(&["security", "--offline=true", "--threshold=20"]).expect("systemd-analyze starts");
    assert!(exposed.status.success(), "{}", String::from_utf8_lossy(&exposed.stdout));
}
