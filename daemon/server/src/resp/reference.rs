//! The commands, as text: how each is written, and the page of all of them.

use std::fmt::Write;

use super::commands::COMMANDS;
use super::table::{Argument, Command, Type};

/// How a command is written.
pub(super) fn usage(command: &Command) -> String {
    let mut usage = command.name.to_ascii_uppercase();
    for argument in command.arguments {
        usage.push(' ');
        usage.push_str(&written(argument));
    }
    usage
}

fn written(argument: &Argument) -> String {
    let written = match (argument.kind, argument.token) {
        (Type::Word, token) => token.to_owned(),
        (_, "") => argument.name.to_owned(),
        (_, token) => format!("{token} {}", argument.name),
    };
    match (argument.is_optional, argument.is_multiple) {
        (false, false) => written,
        (true, false) => format!("[{written}]"),
        (false, true) => format!("{written} [{written} …]"),
        (true, true) => format!("[{written} …]"),
    }
}

const BEFORE: &str = "\
<!-- Written from the table of commands by a test of tollgate-server, which says how to renew it. -->
# RESP

`tollgate serve` speaks RESP2 and RESP3 where `listen.resp` says (127.0.0.1:6380), so that any client of Redis is a client of Tollgate:

```sh
redis-cli -p 6380 CL.THROTTLE user:42 15 30 60          # as redis-cell: limited, limit, remaining, retry, reset
redis-cli -3 -p 6380 TOLLGATE.CHECK api user:42 COST 2  # under a policy of the configuration
```

**Replies.** A decision is a map with the names of the [JSON](openapi.json), in RESP2 the same one after the other. Times are whole microseconds
and their names end in `_us`; −1 stands for what is absent, −2 for never. Booleans are `#t` and `#f`, in RESP2 1 and 0. `CL.THROTTLE` answers
five integers, times in whole seconds, rounded up.

**Limits in place of a policy.** `LIMIT \"10/s burst 20\" key` stands wherever `policy key` does; it is an operator's, as over HTTP.

**Several checks** are joined by `AND` and decided together: all are charged, or none is.

**Retries.** `ID` names the request as a whole: a repeat within 30 s is answered from memory, and charges nothing.

**Who may.** Without tokens, what changes others' keys is for this machine. With tokens each connection needs one: `AUTH token`,
`AUTH name token` or `HELLO 3 AUTH name token`.

**Errors** begin with a code: `ERR`, `NOAUTH`, `WRONGPASS`, `NOPERM`, `NOPROTO`, `EXECABORT`, or `TRYAGAIN` where the store gave no answer
and no policy says what holds then. A denial is no error.

**Pipelines** are decided in order and answered in one write; `MULTI` and `EXEC` do what was queued in order, and others may be
decided between. Bounds are `limits.pipeline`, `limits.body` (of an argument; 16 of it a command) and `limits.key_bytes`.

**What redis-cell does otherwise.** Parts of a second, however small, are rounded up; a quantity of 0 changes nothing; a negative one is
refused; numbers that are none are errors. Other numbers for a key keep what was used; another period does where both divide 210 days, as
do the usual ones from a second to a week and to 30 days (not 28, 60, 90 or 365 days), and else begins anew.
";

/// The groups of commands, in the order of the page.
const GROUPS: [(&str, &str); 6] = [
    ("throttle", "As redis-cell"),
    ("tollgate", "Policies"),
    ("generic", "Keys of CL.THROTTLE"),
    ("transactions", "Transactions"),
    ("connection", "Connections"),
    ("server", "The daemon"),
];

/// The commands that clients of Redis may send, in Markdown.
#[must_use]
pub fn resp_reference() -> String {
    let mut page = BEFORE.to_owned();
    for (group, title) in GROUPS {
        // Writing into a text does not fail.
        let _ = write!(page, "\n## {title}\n\n| Command | Scope | What it does |\n|---|---|---|\n");
        for command in COMMANDS.iter().filter(|command| command.group == group) {
            let scopes: Vec<_> = command.scopes.iter().map(|scope| scope.as_str()).collect();
            let (usage, scopes) = (usage(command), scopes.join(" or "));
            let usage = usage.replace('|', "\\|");
            let _ = writeln!(page, "| `{usage}` | {scopes} | {} |", command.summary);
        }
    }
    page
}
