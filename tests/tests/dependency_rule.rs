//! Holds the dependency rule of docs/architecture.md: which crate may use which, and what it must never reach.
//! A dependency that isn't listed here fails: to add one, decide first in which room it belongs.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// The lists are names with spaces between.
struct Room {
    name: &'static str,
    /// Direct dependencies, build dependencies included; what only its tests use is free.
    may_use: &'static str,
    /// What it must not reach, over any number of steps. Cargo shows features as the whole workspace turns them
    /// on, so optional parts that another room asks for, such as chrono's serde, can't stand here.
    never: &'static str,
}

const ROOMS: [Room; 10] = [
    Room {
        name: "billing-domain",
        may_use: "chrono chrono-tz iso_currency mockall rust_decimal thiserror uuid",
        never: "actix-web diesel libsqlite3-sys tokio tracing",
    },
    Room { name: "billing-application", may_use: "billing-domain thiserror tracing", never: "actix-web diesel tokio" },
    Room {
        name: "billing-storage",
        may_use: "billing-domain chrono chrono-tz diesel diesel_migrations libsqlite3-sys r2d2 rust_decimal serde \
                  serde_json sha2 thiserror tracing uuid",
        never: "actix-web billing-application billing-http tokio",
    },
    Room {
        name: "billing-auth",
        may_use: "aws-lc-rs base64 bcrypt billing-domain getrandom jsonwebtoken serde sha2 subtle uuid",
        never: "actix-web billing-application diesel tokio",
    },
    Room {
        name: "billing-formats",
        may_use: "billing-domain chrono chrono-tz rhai rust_decimal serde_json",
        never: "actix-web billing-application diesel tokio",
    },
    Room {
        name: "billing-report",
        may_use: "billing-domain csv rust_xlsxwriter serde_json tempfile",
        never: "actix-web billing-application diesel tokio",
    },
    Room {
        name: "billing-http",
        may_use: "actix-session actix-web anyhow billing-application billing-domain billing-report chrono futures-util governor \
                  rust_decimal serde serde_json sha2 strsim thiserror tokio tracing tracing-actix-web utoipa utoipa-actix-web uuid validator",
        never: "bcrypt billing-auth billing-formats billing-storage diesel jsonwebtoken libsqlite3-sys",
    },
    Room {
        name: "billing-server",
        may_use: "actix-web billing-application billing-auth billing-domain billing-formats billing-http \
                  billing-report billing-storage chrono clap csv indicatif secrecy serde_json sha2 thiserror tokio tracing tracing-subscriber uuid",
        never: "acceptance billing-testkit",
    },
    Room {
        name: "billing-testkit",
        may_use: "billing-domain chrono chrono-tz proptest rust_decimal uuid",
        never: "actix-web billing-application billing-http billing-storage diesel tokio",
    },
    // The binary is tried from outside, so its crates aren't linked.
    Room {
        name: "acceptance",
        may_use: "serde_json tempfile ureq",
        never: "billing-application billing-http billing-server billing-storage diesel",
    },
];

#[test]
fn every_crate_of_the_workspace_has_a_room() {
    let graph = Graph::of_workspace();
    let rooms: BTreeSet<_> = ROOMS.iter().map(|room| room.name.to_owned()).collect();
    assert_eq!(graph.members, rooms);
}

#[test]
fn a_crate_uses_what_its_room_may_use() {
    let graph = Graph::of_workspace();
    let mut broken = Vec::new();
    for room in &ROOMS {
        let may_use: BTreeSet<_> = room.may_use.split_whitespace().collect();
        let foreign = graph.uses(room.name).iter().filter(|used| !may_use.contains(used.as_str()));
        broken.extend(foreign.map(|used| format!("{} uses {used}", room.name)));
    }
    assert!(broken.is_empty(), "not in the table of docs/architecture.md: {broken:#?}");
}

#[test]
fn a_crate_never_reaches_what_its_room_keeps_out() {
    let graph = Graph::of_workspace();
    let mut broken = Vec::new();
    for room in &ROOMS {
        let reached = graph.reach(room.name);
        let kept_out = room.never.split_whitespace().filter(|never| reached.contains(*never));
        broken.extend(kept_out.map(|never| format!("{} reaches {never}", room.name)));
    }
    assert!(broken.is_empty(), "against the table of docs/architecture.md: {broken:#?}");
}

#[test]
fn only_the_server_knows_the_adapters() {
    let graph = Graph::of_workspace();
    for adapter in ["billing-http", "billing-storage", "billing-auth", "billing-formats"] {
        let users: Vec<_> = graph.members.iter().filter(|member| graph.uses(member).contains(adapter)).collect();
        assert!(users.iter().all(|user| *user == "billing-server"), "{adapter} is used by {users:?}");
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
