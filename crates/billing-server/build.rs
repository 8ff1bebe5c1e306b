//! Options of the linker for the binary.

use std::env;
use std::process::Command;

/// The release of glibc from which on its loader reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The loader reads all relocations at the start. In the usual form, they take as much memory as a tenth of the program. In
    // the packed form, they take almost none.
    if installed_glibc().is_some_and(|release| release >= PACKED_SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the release of glibc of this machine, or `None` if the binary is for another system. The binary runs on machines with
/// the same release or a later one.
fn installed_glibc() -> Option<(u32, u32)> {
    let is_native = env::var("HOST").ok()? == env::var("TARGET").ok()?;
    if !is_native || env::var("CARGO_CFG_TARGET_ENV").ok()? != "gnu" || env::var("CARGO_CFG_TARGET_OS").ok()? != "linux" {
        return None;
    }
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
