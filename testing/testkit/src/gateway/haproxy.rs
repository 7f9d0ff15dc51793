//! HAProxy.

use std::ffi::OsString;
use std::path::Path;

use super::Program;

pub(super) const PROGRAM: Program = Program {
    name: "haproxy",
    variable: "HAPROXY",
    remedy: "on Debian or Ubuntu: sudo apt-get install haproxy",
    elsewhere: &["/usr/sbin/haproxy", "/usr/local/sbin/haproxy"],
    is_packaged: true,
    prepare,
};

fn prepare(program: &Path, folder: &Path) -> Vec<OsString> {
    let file = super::file_ending(folder, ".cfg");
    super::move_to(folder, &file, "/etc/haproxy");
    // In the foreground, as one process.
    [program.as_os_str(), "-db".as_ref(), "-f".as_ref(), file.as_ref()].map(OsString::from).into()
}
