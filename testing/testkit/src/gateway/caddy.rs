//! Caddy.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::Program;

pub(super) const PROGRAM: Program = Program {
    name: "caddy",
    variable: "CADDY",
    remedy: "on Debian or Ubuntu: sudo apt-get install caddy",
    elsewhere: &[],
    is_packaged: true,
    prepare,
};

fn prepare(program: &Path, folder: &Path) -> Vec<OsString> {
    let file = super::file_ending(folder, "Caddyfile");
    let text = fs::read_to_string(&file).expect("a file is read");
    // Its administration has one port for all.
    fs::write(&file, format!("{{\n\tadmin off\n}}\n\n{text}")).expect("a file is written");
    let mut home = OsString::from("HOME=");
    home.push(folder);
    let mut words = vec!["env".into(), "-u".into(), "XDG_CONFIG_HOME".into(), "-u".into()];
    words.extend(["XDG_DATA_HOME".into(), home, program.into(), "run".into()]);
    words.extend(["--adapter".into(), "caddyfile".into(), "--config".into(), file.into()]);
    words
}
