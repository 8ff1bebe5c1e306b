//! The migrations are embedded: cargo has to know that they are part of the crate.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
