//! Holds the dependency rule of docs/architecture.md: which crate may use which, and what it must never reach.
//! A dependency that isn't listed here fails: to add one, decide first which crate it belongs to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The lists are names with spaces between.
struct CrateRule {
    name: &'static str,
    /// Direct dependencies, build dependencies included; what only its tests use is free.
    may_use: &'static str,
    /// What it must not reach, over any number of steps. Cargo shows features as the whole workspace turns them
    /// on, so optional parts that another crate enables, such as chrono's serde, can't stand here.
    never: &'static str,
}

const CRATES: [CrateRule; 21] = [
    CrateRule {
        name: "billing-domain",
        may_use: "chrono chrono-tz ethnum iso_currency mockall rust_decimal sha2 thiserror uuid",
        never: "actix-web diesel libsqlite3-sys tokio tracing",
    },
    CrateRule {
        name: "billing-application",
        may_use: "billing-domain quick_cache thiserror tracing",
        never: "actix-web diesel tokio",
    },
    CrateRule {
        name: "billing-storage",
        may_use: "billing-domain chrono diesel diesel_migrations libsqlite3-sys openssl-sys pq-sys quick_cache r2d2 rust_decimal rustix serde \
                  serde_json sha2 thiserror tracing uuid",
        never: "actix-web billing-application billing-http tokio",
    },
    CrateRule {
        name: "billing-auth",
        may_use: "aws-lc-rs base64 bcrypt billing-domain getrandom jsonwebtoken quick_cache rustix serde sha2 subtle uuid",
        never: "actix-web billing-application diesel tokio",
    },
    CrateRule {
        name: "billing-webhooks",
        may_use: "aws-lc-rs base64 billing-domain chrono ipnet rustls rustls-native-certs thiserror tracing ureq url",
        never: "actix-web billing-application diesel tokio",
    },
    CrateRule {
        name: "billing-formats",
        may_use: "billing-domain billing-json chrono chrono-tz rhai rust_decimal serde_json",
        never: "actix-web billing-application diesel tokio",
    },
    CrateRule {
        name: "billing-report",
        may_use: "billing-domain csv rust_xlsxwriter serde_json tempfile zip",
        never: "actix-web billing-application diesel tokio",
    },
    CrateRule {
        name: "billing-pdf",
        may_use: "billing-domain chrono fixed_decimal icu_calendar icu_datetime icu_decimal icu_locale_core qrcode \
                  rust_decimal rustix serde serde_json sha2 tracing ttf-parser",
        never: "actix-web billing-application diesel tokio typst",
    },
    CrateRule {
        name: "billing-typesetter",
        may_use: "billing-domain billing-pdf chrono clap comemo mimalloc rustix serde serde_json ttf-parser typst typst-layout typst-pdf",
        never: "actix-web billing-application diesel tokio",
    },
    CrateRule {
        name: "billing-einvoice",
        may_use: "billing-domain quick-xml sha2",
        never: "actix-web billing-application diesel tokio typst",
    },
    CrateRule {
        name: "billing-json",
        may_use: "billing-domain serde serde_json sha2 strsim thiserror",
        never: "actix-web diesel tokio",
    },
    CrateRule {
        name: "billing-import",
        may_use: "billing-domain billing-json csv serde_json sha2 thiserror",
        never: "actix-web billing-application diesel tokio",
    },
    CrateRule {
        name: "billing-console",
        may_use: "base64 billing-api billing-application billing-domain billing-import billing-json billing-report http maud pulldown-cmark qrcode \
                  rust_decimal serde_json tracing",
        never: "actix-web billing-http diesel tokio",
    },
    CrateRule {
        name: "billing-api",
        may_use: "base64 billing-application billing-domain billing-import billing-json billing-report http png roxmltree rust_decimal serde \
                  serde_json serde_urlencoded sha2 thiserror tracing url utoipa validator",
        never: "actix-web billing-console billing-http diesel maud tokio",
    },
    CrateRule {
        name: "billing-http",
        may_use: "actix-session actix-web anyhow base64 billing-api billing-application billing-domain billing-import billing-json billing-report flate2 \
                  futures-util governor http ipnet opentelemetry opentelemetry_sdk prometheus-client serde serde_json tempfile thiserror tokio tracing tracing-opentelemetry url",
        never: "bcrypt billing-auth billing-console billing-formats billing-storage diesel jsonwebtoken libsqlite3-sys maud",
    },
    CrateRule {
        name: "billing-server",
        may_use: "actix-web async-trait billing-api billing-application billing-auth billing-console billing-domain billing-formats billing-http billing-import \
                  billing-einvoice billing-pdf billing-report billing-storage billing-webhooks chrono clap flate2 indicatif mimalloc opentelemetry opentelemetry-http opentelemetry-otlp \
                  opentelemetry_sdk rustix secrecy serde_json socket2 tempfile thiserror tokio tracing tracing-opentelemetry tracing-subscriber ureq uuid \
                  validator",
        never: "acceptance billing-testkit typst",
    },
    CrateRule {
        name: "billing-testkit",
        may_use: "billing-domain chrono chrono-tz proptest rust_decimal sha2 uuid",
        never: "actix-web billing-application billing-http billing-storage diesel tokio",
    },
    // The store of tests is a real one.
    CrateRule {
        name: "billing-teststore",
        may_use: "billing-domain billing-storage diesel tempfile",
        never: "actix-web billing-application billing-http billing-testkit tokio",
    },
    // Tries the readers of what strangers send, and a whole server on the store of tests.
    CrateRule {
        name: "billing-fuzz",
        may_use: "actix-web bigdecimal billing-api billing-application billing-auth billing-console billing-domain billing-formats billing-http billing-import billing-json \
                  billing-testkit billing-teststore libfuzzer-sys serde_json",
        never: "billing-server",
    },
    // Measures the binary from outside, with the harness of the tests. It also is the plain server that the binary is compared
    // with.
    CrateRule {
        name: "billing-bench",
        may_use: "acceptance actix-web futures-util hdrhistogram http-body-util hyper hyper-util jsonwebtoken serde serde_json tempfile \
                  thiserror tokio",
        never: "billing-application billing-http billing-server billing-storage",
    },
    // The binary is tried from outside, so its crates aren't linked.
    CrateRule {
        name: "acceptance",
        may_use: "aws-lc-rs base64 diesel flate2 serde_json tempfile ureq",
        never: "billing-application billing-http billing-server billing-storage",
    },
];

#[test]
fn each_ignored_advisory_names_a_crate_in_use_and_has_a_date_of_review() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (deny, lock, ci) = (read("deny.toml"), read("Cargo.lock"), read(".github/workflows/ci.yml"));
    assert!(deny.contains("\nunmaintained = \"all\"\n"), "crates without a maintainer are reported, also those of dependencies");
    let ignored: Vec<&str> = deny.lines().filter(|line| line.trim_start().starts_with("{ id = \"RUSTSEC-")).collect();
    assert_eq!(ignored.len(), deny.matches("id = \"RUSTSEC-").count());
    assert!(!ignored.is_empty());
    for advisory in ignored {
        let (_, reason) = advisory.split_once("reason = \"").unwrap_or_else(|| panic!("{advisory} has no reason"));
        let name = reason.split([':', ' ']).next().expect("a name");
        assert!(lock.contains(&format!("\nname = \"{name}\"\n")), "{name} isn't a dependency: {advisory}");
        let date = reason.split_once("Review by ").and_then(|(_, date)| date.get(..10)).unwrap_or_default();
        assert!(date.len() == 10 && date.chars().all(|c| c.is_ascii_digit() || c == '-'), "{advisory} has no date of review");
    }
    assert!(ci.contains("ADVISORIES: required"), "the workflow must fail if it cannot read the advisories");
}

#[test]
fn the_release_checks_sums_for_overflow() {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml")).expect("the manifest");
    let (_, release) = manifest.split_once("\n[profile.release]\n").expect("the profile of a release");
    let release = release.split("\n[").next().expect("its settings");
    assert!(release.lines().any(|line| line == "overflow-checks = true"), "{release}");
}

#[test]
fn every_crate_of_the_workspace_has_a_rule() {
    let graph = Graph::of_workspace();
    let listed: BTreeSet<_> = CRATES.iter().map(|rule| rule.name.to_owned()).collect();
    assert_eq!(graph.members, listed);
}

#[test]
fn a_crate_uses_only_the_crates_of_its_rule() {
    let graph = Graph::of_workspace();
    let mut broken = Vec::new();
    for rule in &CRATES {
        let may_use: BTreeSet<_> = rule.may_use.split_whitespace().collect();
        let foreign = graph.uses(rule.name).iter().filter(|used| !may_use.contains(used.as_str()));
        broken.extend(foreign.map(|used| format!("{} uses {used}", rule.name)));
    }
    assert!(broken.is_empty(), "not in the table of docs/architecture.md: {broken:#?}");
}

#[test]
fn a_room_allows_nothing_that_its_crate_does_not_use() {
    let graph = Graph::of_workspace();
    let unused = CRATES.iter().flat_map(|rule| {
        let uses = graph.uses(rule.name);
        rule.may_use.split_whitespace().filter(|name| !uses.contains(*name)).map(|name| format!("{} uses no {name}", rule.name))
    });
    let unused: Vec<_> = unused.collect();
    assert!(unused.is_empty(), "take these off the table: {unused:#?}");
}

#[test]
fn the_workspace_names_no_version_of_what_nobody_uses() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let manifest = |path: &Path| std::fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
    let workspace = manifest(root);
    let (_, table) = workspace.split_once("[workspace.dependencies]").expect("the table");
    let table = table.split("\n[").next().expect("its lines");
    let crates = std::fs::read_dir(root.join("crates")).expect("the crates").map(|entry| entry.expect("a crate").path());
    let members: String = crates.chain([root.join("tests")]).map(|path| manifest(&path)).collect();
    let is_used = |name: &str| {
        members
            .lines()
            .any(|line| line.starts_with(&format!("{name}.workspace")) || line.starts_with(&format!("{name} = {{ workspace")))
    };
    let named =
        table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
    let unused: Vec<_> = named.filter(|name| !is_used(name)).collect();
    assert!(unused.is_empty(), "take these off Cargo.toml: {unused:?}");
}

#[test]
fn a_crate_never_reaches_what_its_room_keeps_out() {
    let graph = Graph::of_workspace();
    let mut broken = Vec::new();
    for rule in &CRATES {
        let reached = graph.reach(rule.name);
        let kept_out = rule.never.split_whitespace().filter(|never| reached.contains(*never));
        broken.extend(kept_out.map(|never| format!("{} reaches {never}", rule.name)));
    }
    assert!(broken.is_empty(), "against the table of docs/architecture.md: {broken:#?}");
}

#[test]
fn only_the_server_knows_the_adapters() {
    let graph = Graph::of_workspace();
    for adapter in ["billing-http", "billing-storage", "billing-auth", "billing-formats", "billing-einvoice", "billing-pdf"] {
        let users: Vec<_> = graph.members.iter().filter(|member| graph.uses(member).contains(adapter)).collect();
        // What isn't shipped tries them.
        let may = ["billing-server", "billing-typesetter", "billing-fuzz", "billing-teststore"];
        assert!(users.iter().all(|user| may.contains(&user.as_str())), "{adapter} is used by {users:?}");
    }
}

/// Crate names and what each uses outside its tests.
struct Graph {
    members: BTreeSet<String>,
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn of_workspace() -> Self {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--all-features", "--manifest-path"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
            .args(["--filter-platform", &host()])
            .output()
            .expect("cargo starts");
        assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        Self::from_metadata(&serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    fn from_metadata(metadata: &Value) -> Self {
        let list = |value: &Value| value.as_array().expect("a list").clone();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let names: BTreeMap<_, _> = list(&metadata["packages"]).iter().map(|p| (text(&p["id"]), text(&p["name"]))).collect();
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in list(&metadata["resolve"]["nodes"]) {
            // Two versions of a crate share a name, and what either uses counts.
            let uses = edges.entry(names[&text(&node["id"])].clone()).or_default();
            for used in list(&node["deps"]) {
                if list(&used["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev") {
                    uses.insert(names[&text(&used["pkg"])].clone());
                }
            }
        }
        let members = list(&metadata["workspace_members"]).iter().map(|id| names[&text(id)].clone()).collect();
        Self { members, edges }
    }

    fn uses(&self, name: &str) -> &BTreeSet<String> {
        self.edges.get(name).unwrap_or_else(|| panic!("{name} is not in the workspace"))
    }

    fn reach(&self, name: &str) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        let mut waiting: Vec<_> = self.uses(name).iter().cloned().collect();
        while let Some(next) = waiting.pop() {
            if reached.insert(next.clone()) {
                waiting.extend(self.uses(&next).iter().cloned());
            }
        }
        reached
    }
}

/// Without it, cargo wants the crates of every platform, also where there is no network to get them.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host").to_owned()
}

#[test]
fn modules_of_a_crate_use_each_other_in_no_circle() {
    for name in ["billing-domain", "billing-application", "billing-api", "billing-http"] {
        let modules = Modules::of_crate(name);
        assert!(modules.uses.values().map(BTreeSet::len).sum::<usize>() > 20, "{name}: what modules use isn't seen");
        let circles: Vec<_> = modules.uses.keys().filter(|module| modules.reach(module).contains(*module)).collect();
        assert!(circles.is_empty(), "{name}: {circles:?} reach themselves");
    }
}

#[test]
fn a_circle_of_modules_is_seen() {
    let texts = [
        ("a", "use crate::b::{One, c::Two};\n"),
        ("b", "// use crate::a;\n#[cfg(test)]\nmod tests { use crate::a; }\n"),
        ("b::c", "use super::d::f;"),
        ("b::d", "fn g() { crate::a::h() }"),
    ];
    let modules = Modules::of_texts(texts.map(|(module, text)| (module.to_owned(), text.to_owned())).into());
    let reached = |module: &str| modules.reach(module).into_iter().collect::<Vec<_>>();
    assert_eq!(reached("a"), ["a", "b", "b::c", "b::d"]);
    assert!(reached("b").is_empty());
}

/// Modules of a crate, a file each, and which of them each names outside its tests.
struct Modules {
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl Modules {
    fn of_crate(name: &str) -> Self {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates")).join(name).join("src");
        let (mut texts, mut directories) = (BTreeMap::new(), vec![root.clone()]);
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    directories.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let within = path.strip_prefix(&root).expect("below it").with_extension("");
                    let names: Vec<_> = within.iter().map(|name| name.to_str().expect("UTF-8")).collect();
                    let module = names.join("::");
                    let module = module.strip_suffix("::mod").unwrap_or(&module).to_owned();
                    texts.insert(module, std::fs::read_to_string(&path).expect("a source file"));
                }
            }
        }
        texts.remove("lib");
        Self::of_texts(texts)
    }

    fn of_texts(texts: BTreeMap<String, String>) -> Self {
        let uses = texts.iter().map(|(module, text)| (module.clone(), used_by(module, text, &texts))).collect();
        Self { uses }
    }

    fn reach(&self, module: &str) -> BTreeSet<String> {
        let (mut reached, mut waiting) = (BTreeSet::new(), vec![module]);
        while let Some(next) = waiting.pop() {
            waiting.extend(self.uses[next].iter().filter(|used| reached.insert((*used).clone())).map(String::as_str));
        }
        reached
    }
}

/// The other modules that a text names by `crate::` or `super::`.
fn used_by(module: &str, text: &str, modules: &BTreeMap<String, String>) -> BTreeSet<String> {
    let code: String = text.lines().map(|line| line.split("//").next().unwrap_or(line)).collect::<Vec<_>>().join("\n");
    let code = code.split("#[cfg(test)]").next().unwrap_or(&code);
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut found = BTreeSet::new();
    for (at, root) in ["crate::", "super::"].into_iter().flat_map(|root| code.match_indices(root)) {
        if code[..at].ends_with(is_of_path) {
            continue;
        }
        let path: String = code[at..].chars().take_while(|c| is_of_path(*c)).collect();
        let rest = &code[at + path.len()..];
        let listed = rest.strip_prefix('{').and_then(|rest| rest.split('}').next());
        // The first name of each that is listed: what stands below belongs to it, or to its own list.
        let ends: Vec<&str> = listed.map_or(vec![""], |listed| listed.split(',').map(str::trim).collect());
        let mut above: Vec<&str> = if root == "crate::" { Vec::new() } else { module.split("::").collect() };
        let mut names = path.split("::").filter(|name| !name.is_empty()).peekable();
        names.next_if_eq(&"crate");
        while names.next_if_eq(&"super").is_some() {
            above.pop();
        }
        above.extend(names);
        for end in ends {
            let mut names = above.clone();
            names.extend(end.split("::").filter(|name| !name.is_empty()));
            while !names.is_empty() && !modules.contains_key(&names.join("::")) {
                names.pop();
            }
            let used = names.join("::");
            if !used.is_empty() && used != module {
                found.insert(used);
            }
        }
    }
    found
}
