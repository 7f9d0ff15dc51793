//! The Lua script, concatenated from one file per concern at build time.
//!
//! A function library runs it: a server creates its functions once, and keeps them and the parsed policies
//! from call to call. Servers and users that cannot call functions run the same text with `EVALSHA`, which creates
//! the functions in each call.

use std::sync::LazyLock;

use sha1_smol::Sha1;

/// How a server is made to run the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptForm {
    /// `FCALL`.
    Function,
    /// `EVALSHA`.
    Digest,
    /// `EVALSHA` through a proxy, which does not forward `SCRIPT LOAD`: `EVAL` loads the script.
    Proxied,
}

impl ScriptForm {
    /// Returns the command of a call and its first argument. `loads` is true if the server may not have the
    /// script.
    pub(crate) fn command(self, loads: bool) -> (&'static str, &'static str) {
        match self {
            ScriptForm::Function => ("FCALL", function()),
            ScriptForm::Proxied if loads => ("EVAL", TEXT),
            ScriptForm::Digest | ScriptForm::Proxied => ("EVALSHA", sha1()),
        }
    }

    /// Returns the command that loads the script, if it is not the call itself.
    pub(crate) fn load_command(self) -> Option<[&'static str; 3]> {
        match self {
            ScriptForm::Function => Some(["FUNCTION", "LOAD", library()]),
            ScriptForm::Digest => Some(["SCRIPT", "LOAD", TEXT]),
            ScriptForm::Proxied => None,
        }
    }
}

macro_rules! body {
    () => {
        concat!(
            "local function create()\n",
            include_str!("../lua/arguments.lua"),
            include_str!("../lua/fast_path.lua"),
            include_str!("../lua/long_logs.lua"),
            include_str!("../lua/fast_lists.lua"),
            // The general path is created on demand: each function that EVALSHA creates costs 50 ns.
            "local function general()\nlocal algorithms = {}\n",
            include_str!("../lua/algorithms/token_bucket.lua"),
            include_str!("../lua/algorithms/fixed_window.lua"),
            include_str!("../lua/algorithms/sliding_window.lua"),
            include_str!("../lua/algorithms/sliding_log.lua"),
            include_str!("../lua/algorithms/concurrency.lua"),
            include_str!("../lua/algorithms/lease_set.lua"),
            include_str!("../lua/key.lua"),
            include_str!("../lua/check.lua"),
            "local function create_operations()\n",
            include_str!("../lua/operations.lua"),
            include_str!("../lua/reservations.lua"),
            "end\n",
            include_str!("../lua/request_ids.lua"),
            include_str!("../lua/decide.lua"),
            "end\n",
            include_str!("../lua/main.lua"),
            "end\n",
        )
    };
}

/// The text of the script, for `SCRIPT LOAD` and `EVAL`.
const TEXT: &str = concat!("#!lua\n", body!(), "return create()(KEYS, ARGV)\n");

/// Returns the SHA-1 of the script, for `EVALSHA`.
fn sha1() -> &'static str {
    static SHA1: LazyLock<String> = LazyLock::new(|| Sha1::from(TEXT).digest().to_string());
    &SHA1
}

/// Returns the name of the library and of its function, for `FCALL`. It has the digest of the text, so that
/// the libraries of two versions are on a server side by side.
fn function() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| format!("tollgate_{}", sha1()));
    &NAME
}

/// Returns the text of the library, for `FUNCTION LOAD`. A server loads it without access to `struct` and
/// `math`, so the functions are created by the first call.
fn library() -> &'static str {
    static LIBRARY: LazyLock<String> = LazyLock::new(|| {
        format!(
            "#!lua name={name}\n{body}local run\n\
             redis.register_function('{name}', function(keys, arguments)\n\
             run = run or create()\nreturn run(keys, arguments)\nend)\n",
            name = function(),
            body = body!(),
        )
    });
    &LIBRARY
}
