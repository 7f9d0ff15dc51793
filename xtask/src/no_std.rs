//! Proves that `tollgate-algorithms` does not link `std`, with the host's toolchain only:
//! `no_std/proof.rs` links it and defines a panic handler, which the compiler rejects if `std` has
//! defined one.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::process;

pub(crate) fn check(root: &Path) -> Result<()> {
    let target = root.join("target/no-std");
    let mut build = process::cargo(root, "build");
    build.args(["--package", "tollgate-algorithms", "--lib", "--target-dir"]).arg(&target);
    process::run(build)?;
    process::run(proof(root, &target.join("debug/libtollgate_algorithms.rlib")))
}

fn proof(root: &Path, library: &Path) -> Command {
    let mut compile = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compile.current_dir(root).args(["--edition", "2024", "--crate-type", "staticlib"]);
    // Unwinding needs `std`.
    compile.args(["--emit", "metadata", "-C", "panic=abort"]);
    compile.arg("-L").arg(library.with_file_name("deps"));
    compile.arg("--extern").arg(format!("tollgate_algorithms={}", library.display()));
    compile.arg("-o").arg(library.with_file_name("no_std_proof.rmeta"));
    compile.arg("xtask/no_std/proof.rs");
    compile
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::repository;

    /// Whether the proof accepts a core crate with this source.
    fn accepts(name: &str, source: &str) -> bool {
        let folder = env::temp_dir().join(format!("xtask-no-std-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("deps")).unwrap();
        fs::write(folder.join("core.rs"), source).unwrap();
        let library = folder.join("libtollgate_algorithms.rlib");
        let mut compile = Command::new("rustc");
        let arguments = "--edition 2024 --crate-type rlib --crate-name tollgate_algorithms";
        compile.args(arguments.split(' '));
        compile.arg("-o").arg(&library).arg(folder.join("core.rs"));
        process::output(compile).unwrap();
        let proof = process::output(proof(&repository::root(), &library));
        fs::remove_dir_all(&folder).unwrap();
        proof.is_ok()
    }

    #[test]
    fn core_that_links_std_is_rejected() {
        assert!(accepts("core", "#![no_std] pub fn f() -> Option<u8> { None }"));
        assert!(accepts(
            "alloc",
            "#![no_std] extern crate alloc; pub fn f() -> alloc::string::String { \"\".into() }"
        ));
        assert!(!accepts("std", "pub fn f() -> u8 { 0 }"));
        assert!(!accepts("hidden", "#![no_std] extern crate std; pub fn f() -> u8 { 0 }"));
    }
}
