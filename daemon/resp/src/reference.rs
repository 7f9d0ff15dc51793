//! The reference page of the commands.

use std::fmt::Write;

use super::commands::commands;

const INTRODUCTION: &str = "\
<!-- Generated from the table of commands by a test of tollgate-daemon, which also updates it. -->
# RESP

`tollgate serve` supports RESP2 and RESP3 on `listen.resp` (default 127.0.0.1:6380), so that any Redis client is a Tollgate client:

```sh
redis-cli -p 6380 CL.THROTTLE user:42 15 30 60          # as redis-cell: limited, limit, remaining, retry, reset
redis-cli -3 -p 6380 TOLLGATE.CHECK api user:42 COST 2  # under a policy of the configuration
```

**Replies.** A decision is a map with the names of the [JSON API](openapi.json); in RESP2 an array of alternating names and values. Times are
whole microseconds, and their names end in `_us`; −1 is an absent value, −2 is never. `FOR` also accepts a duration
such as `1h`. Booleans are `#t` and `#f`, in RESP2 1 and 0. The replies of `SETTLE`, `CANCEL`, `REFUND`, `PENALIZE`, `RESET`, `BLOCK`,
`UNBLOCK`, `RENEW` and `RELEASE` are [changes](http-api.md#changes), without `allowed`.
`CL.THROTTLE` returns five integers, with times in seconds, rounded up.

**Inline limits.** `LIMIT \"10/s burst 20\" key` can replace `policy key` in every command; it is for operators only, as over HTTP.

**Envoy's rules.** `DOMAIN edge \"remote_address=10.0.0.1;path=/a\"` can replace `policy key` in `TOLLGATE.CHECK`, `PEEK`, `SETTLE`, `RESET`, `BLOCK`,
`UNBLOCK`, `REFUND`, `PENALIZE` and `INSPECT`: a domain of Envoy's rate limit service and the entries of a descriptor, with `%25`, `%3B`
and `%3D` for `%`, `;` and `=`.

**Hints.** A reply has a field `hint` if the policy does not have the tier, so that its limits without a tier apply, and if `RESET`,
`BLOCK`, `UNBLOCK`, `REFUND`, `PENALIZE` or `INSPECT` named a key for which nothing is counted.

**Several checks** are joined by `AND` and executed together: all are charged, or none is.

**Retries.** `ID` is the idempotency key of a request: a repeat within 30 s (`store.request_id_horizon`) returns the remembered decision, and charges nothing.
`SETTLE` has the `ID` and the checks of a check, with the actual costs. It replaces what the check charged, once; an unknown `ID` is an error.

**Authorisation.** Commands with the scope `operate` need a token, a Unix socket or `operators: loopback`. With tokens each
connection needs one: `AUTH token`, `AUTH name token` or `HELLO 3 AUTH name token`.

**Errors** begin with a code: `ERR`, `NOAUTH`, `WRONGPASS`, `NOPERM`, `NOPROTO`, `EXECABORT`, or `TRYAGAIN` if the store is unavailable
and the policy does not decide without it. A denial is not an error.

**Pipelines** are executed in order and answered in one write. `MULTI` and `EXEC` execute the queued commands in order; those of other
clients may be executed in between. The bounds are `limits.pipeline`, `limits.body` (per argument; 16 times that per command) and
`limits.key_bytes`.

**Differences from redis-cell.** Fractions of a second are rounded up; a quantity of 0 changes nothing; a negative quantity and invalid
numbers are errors. A key keeps its usage when its count or burst changes. If its period changes, it keeps its usage only if both periods
divide 210 days. The usual periods from a second to a week do, and so do 30 days, but not 28, 60, 90 or 365 days.
";

/// The groups of commands in the order of the page.
const GROUPS: [(&str, &str); 6] = [
    ("throttle", "As redis-cell"),
    ("tollgate", "Policies"),
    ("generic", "Keys of CL.THROTTLE"),
    ("transactions", "Transactions"),
    ("connection", "Connections"),
    ("server", "The daemon"),
];

/// The reference page of the commands, in Markdown.
#[must_use]
pub fn resp_reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (group, title) in GROUPS {
        // Writing to a `String` cannot fail.
        let _ = write!(page, "\n## {title}\n\n| Command | Scope | Description |\n|---|---|---|\n");
        for command in commands().iter().filter(|command| command.group == group) {
            let scopes: Vec<_> = command.scopes.iter().map(|scope| scope.as_str()).collect();
            let (usage, scopes) = (command.usage().replace('|', "\\|"), scopes.join(" or "));
            let _ = writeln!(page, "| `{usage}` | {scopes} | {} |", command.summary);
        }
    }
    page
}
