//! The bytes that once reached something new, tried again.

use std::path::Path;

use billing_fuzz::TARGETS;

#[test]
fn what_is_kept_is_taken_as_it_must_be() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in TARGETS {
        let kept = std::fs::read_dir(corpora.join(target.name)).unwrap_or_else(|error| panic!("{}: {error}", target.name));
        let mut files: Vec<_> = kept.map(|entry| entry.expect("a file").path()).collect();
        files.sort();
        assert!(files.len() > 3, "{} has no corpus", target.name);
        for file in files {
            println!("{}", file.display());
            target.run(&std::fs::read(&file).expect("a file that can be read"));
        }
    }
}
