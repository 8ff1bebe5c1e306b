//! Replays the corpus: inputs that once reached new code.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use billing_fuzz::TARGETS;

#[test]
fn what_is_kept_is_taken_as_it_must_be() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in TARGETS {
        let inputs =
            std::fs::read_to_string(corpora.join(target.name)).unwrap_or_else(|error| panic!("{}: {error}", target.name));
        assert!(inputs.lines().count() > 3, "{} has no corpus", target.name);
        for input in inputs.lines() {
            println!("{}: {input}", target.name);
            target.run(&STANDARD.decode(input).expect("an input in base64"));
        }
    }
}
