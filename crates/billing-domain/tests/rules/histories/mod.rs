//! Random histories against a naive model of what is owed (quality.md D2).
//!
//! `HISTORIES=n` plays so many, `SEED=s` starts with that seed, `SURVEY=1` goes on after failures and counts them by kind,
//! `SHOW=1` tells what was reached, `DUMP=1` shows all documents of a failing history. Comments with P1…, L1… name findings
//! and doubts that the model tolerates or skips until they are settled.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, missing_docs)]
#![allow(clippy::disallowed_methods, reason = "which histories to play is told by the environment")]

mod check;
mod concrete;
mod convert;
mod follow;
mod generate;
mod model;
mod money;
mod plans;
mod shrink;
mod spec;
mod world;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use generate::Kind;
use plans::Reached;
use spec::History;

type Play = fn(&History) -> Result<Reached, (usize, String)>;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number: {text}")))
}

/// Plays a history; a panic is a failure of its last step.
fn caught(play: Play, history: &History) -> Result<Reached, (usize, String)> {
    std::panic::catch_unwind(AssertUnwindSafe(|| play(history))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err((history.steps.len(), format!("panicked: {}", text.unwrap_or_default())))
    })
}

/// What goes wrong is told apart by its first words, without the numbers.
fn words(problem: &str) -> String {
    problem.chars().filter(|c| c.is_alphabetic()).take(30).collect()
}

/// What went wrong in the history of a seed, made short.
fn report(seed: u64, kind: Kind, play: Play) -> String {
    let history = generate::history(seed, kind);
    let Err((_, first)) = caught(play, &history) else { panic!("{seed} doesn't fail twice") };
    let history =
        shrink::shrink(history, |shorter| caught(play, shorter).is_err_and(|(_, problem)| words(&problem) == words(&first)));
    let Err((step, problem)) = caught(play, &history) else { panic!("{seed} doesn't fail twice") };
    let steps: Vec<String> = history.steps.iter().zip(1..).map(|(step, i): (_, u32)| format!("{i}. {step:?}")).collect();
    format!("SEED={seed}, at step {step}: {problem}\n{:?}\n{:?}\n{}", history.catalog, history.products, steps.join("\n"))
}

/// Plays histories on all cores.
fn play_all(kind: Kind, play: Play, default: u64) {
    let (first, count) = (number("SEED", 1), number("HISTORIES", default));
    let next = AtomicU64::new(first);
    let failed = AtomicU64::new(u64::MAX);
    // `SURVEY=1` goes on after a failure, and tells what went wrong how often.
    let survey = std::env::var("SURVEY").is_ok();
    let kinds = std::sync::Mutex::new(std::collections::BTreeMap::<String, (u32, u64)>::new());
    let stop = AtomicBool::new(false);
    let reached = std::sync::Mutex::new(Reached::new());
    std::panic::set_hook(Box::new(|_| {}));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = Reached::new();
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    match caught(play, &generate::history(seed, kind)) {
                        Ok(reached) => reached.into_iter().for_each(|(what, times)| *mine.entry(what).or_insert(0) += times),
                        Err((_, problem)) if survey => {
                            let mut kinds = kinds.lock().expect("no thread panics with it");
                            let kind = kinds.entry(words(&problem)).or_insert((0, seed));
                            *kind = (kind.0 + 1, kind.1.min(seed));
                        }
                        Err(_) => {
                            failed.fetch_min(seed, Ordering::Relaxed);
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                }
                let mut all = reached.lock().expect("no thread panics with it");
                mine.into_iter().for_each(|(what, times)| *all.entry(what).or_insert(0) += times);
            });
        }
    });
    let failed = failed.into_inner();
    let problem = (failed != u64::MAX).then(|| report(failed, kind, play));
    let _ = std::panic::take_hook();
    if survey {
        eprintln!("{:#?}", kinds.into_inner().expect("no thread panics with it"));
    }
    if std::env::var("SHOW").is_ok() {
        eprintln!("{:#?}", reached.into_inner().expect("no thread panics with it"));
    }
    assert!(problem.is_none(), "{}", problem.unwrap_or_default());
}

#[test]
fn terms_are_in_force_as_the_rules_say() {
    play_all(Kind::Terms, plans::play, 2_000);
}

#[test]
fn documents_say_what_is_owed() {
    play_all(Kind::Whole, world::play, 2_000);
}
