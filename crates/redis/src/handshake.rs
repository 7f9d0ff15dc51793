//! The check of a server before its connection is used: its kind and version, and whether it can
//! decide.

use redis::{Pipeline, Value};
use tollgate_state::{Failure, FailureKind};

use crate::connection::{CallOptions, CommandError, Connection, into_result};
use crate::encode::{Call, NO_REQUESTS};
use crate::error;
use crate::keyspace::Keyspace;
use crate::script::ScriptForm;

/// The kind of server that the store's URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// A server that has all keys, at the URL or behind sentinels.
    Single,
    /// A node of a cluster.
    ClusterNode,
    /// A proxy that distributes keys over several servers by their hash tags. It knows the commands for
    /// keys only.
    Proxy,
}

/// The name of the connection in `CLIENT LIST`.
const CLIENT_NAME: &str = "tollgate";

/// Checks a server with a call of the script that has no requests. Loads the script if the server does
/// not have it, and sets the form in which the connection calls it.
pub(crate) async fn check_server(
    connection: &mut Connection,
    kind: ServerKind,
    keyspace: &Keyspace,
) -> Result<(), Failure> {
    if kind == ServerKind::Proxy {
        return check_proxy(connection, keyspace).await;
    }
    let mut pipeline = Pipeline::with_capacity(5);
    pipeline.cmd("HELLO");
    pipeline.cmd("CLIENT").arg("SETNAME").arg(CLIENT_NAME);
    pipeline.cmd("CLIENT").arg("SETINFO").arg("LIB-NAME").arg(CLIENT_NAME);
    pipeline.cmd("CLIENT").arg("SETINFO").arg("LIB-VER").arg(env!("CARGO_PKG_VERSION"));
    let (name, script) = ScriptForm::Function.command(false);
    pipeline.cmd(name).arg(script).arg(0).arg(&NO_REQUESTS);
    let mut replies = connection.pipeline(&pipeline).await.map_err(error::from_connect)?;
    // Users with minimal permissions cannot execute HELLO and CLIENT; old servers do not know them.
    if let Some(Ok(hello)) = replies.first().map(|reply| into_result(Ok(reply.clone()))) {
        check_hello(&hello, kind)?;
    }
    // A pipeline without replies has an invalid one.
    let called = into_result(Ok(replies.pop().unwrap_or(Value::Nil)));
    let reply = load_if_missing(connection, called, &Call::empty()).await;
    if !reply.as_ref().is_err_and(cannot_call_functions) {
        return check_reply(reply);
    }
    connection.set_form(ScriptForm::Digest);
    check_call(connection, &Call::empty()).await
}

/// Checks one of the servers behind a proxy, with a key in its partition. The others get the script with
/// the first call that they reject.
async fn check_proxy(connection: &mut Connection, keyspace: &Keyspace) -> Result<(), Failure> {
    connection.set_form(ScriptForm::Proxied);
    let keys = vec![keyspace.unused_name_in(0).into()];
    check_call(connection, &Call { keys, ..Call::empty() }).await
}

async fn check_call(connection: &Connection, call: &Call) -> Result<(), Failure> {
    let reply = connection.call(call, CallOptions::default()).await;
    check_reply(load_if_missing(connection, reply, call).await)
}

/// Repeats a call together with the script if the server does not have it.
async fn load_if_missing(
    connection: &Connection,
    reply: Result<Value, CommandError>,
    call: &Call,
) -> Result<Value, CommandError> {
    match reply {
        Err(CommandError::Server(error)) if error::is_script_missing(&error) => {
            connection
                .call(call, CallOptions { loads_script: true, ..CallOptions::default() })
                .await
        }
        reply => reply,
    }
}

/// Returns whether the server does not know functions or the user may not call or load them.
fn cannot_call_functions(error: &CommandError) -> bool {
    use FailureKind::{NoPermission, Rejected, UnknownCommand, UnsupportedServer};
    let CommandError::Server(error) = error else { return false };
    let kind = error::from_server(error).kind;
    matches!(kind, NoPermission | UnknownCommand | Rejected | UnsupportedServer)
}

/// Returns whether the server can decide, now or soon without another connection.
fn check_reply(reply: Result<Value, CommandError>) -> Result<(), Failure> {
    let failure = match reply {
        Ok(Value::Array(parts)) if parts.len() == 3 => return Ok(()),
        Ok(_) => return Err(Failure::new(FailureKind::Protocol, "the reply to an empty call")),
        Err(CommandError::Lost(failure)) => {
            return Err(Failure::new(FailureKind::Unreachable, failure.message));
        }
        Err(error) => error.failure(),
    };
    match failure.kind {
        // The same server recovers from these.
        FailureKind::OutOfMemory
        | FailureKind::Misconfigured
        | FailureKind::NoReplicas
        | FailureKind::Busy
        | FailureKind::ClusterDown => Ok(()),
        _ => Err(failure),
    }
}

/// Checks the version and the mode in the reply to `HELLO`, a list of names and values.
fn check_hello(reply: &Value, kind: ServerKind) -> Result<(), Failure> {
    let Value::Array(parts) = reply else { return Ok(()) };
    let field = |name: &str| {
        let (pairs, _) = parts.as_chunks::<2>();
        pairs.iter().find(|[key, _]| text(key) == Some(name)).and_then(|[_, value]| text(value))
    };
    let (server, version) = (field("server").unwrap_or("server"), field("version").unwrap_or(""));
    let major: Option<u32> = version.split('.').next().and_then(|major| major.parse().ok());
    if major.is_some_and(|major| major < 7) {
        let message = format!("the server is {server} {version}");
        return Err(Failure::new(FailureKind::UnsupportedServer, message));
    }
    let remedy = match (field("mode"), kind) {
        (Some("cluster"), ServerKind::Single) => {
            "the server is a node of a cluster: use redis+cluster:// in place of redis://"
        }
        (Some("sentinel"), _) => {
            "the server is a sentinel: use redis+sentinel://HOST:PORT/MASTER, with the master's name"
        }
        (Some("standalone"), ServerKind::ClusterNode) => {
            "the server is not a node of a cluster: use redis:// in place of redis+cluster://"
        }
        _ => return Ok(()),
    };
    Err(Failure::new(FailureKind::WrongTopology, remedy))
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(fields: &[(&str, &str)], kind: ServerKind, expected: Option<(FailureKind, &str)>) {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let parts = fields.iter().flat_map(|(name, value)| [bulk(name), bulk(value)]).collect();
        let failure = check_hello(&Value::Array(parts), kind).err();
        assert_eq!(failure.as_ref().map(|failure| failure.kind), expected.map(|(kind, _)| kind));
        if let (Some(failure), Some((_, text))) = (failure, expected) {
            assert!(failure.message.contains(text), "{failure}");
        }
    }

    #[test]
    fn unsuitable_servers_are_recognized() {
        use ServerKind::{ClusterNode, Single};
        let redis = |version, mode| [("server", "redis"), ("version", version), ("mode", mode)];
        let wrong = FailureKind::WrongTopology;
        let old = FailureKind::UnsupportedServer;
        check(&redis("7.0.15", "standalone"), Single, None);
        check(&redis("8.2.0", "cluster"), ClusterNode, None);
        check(&redis("7.4.1", "cluster"), Single, Some((wrong, "use redis+cluster://")));
        check(&redis("7.4.1", "sentinel"), Single, Some((wrong, "use redis+sentinel://")));
        check(&redis("7.4.1", "sentinel"), ClusterNode, Some((wrong, "is a sentinel")));
        check(&redis("7.4.1", "standalone"), ClusterNode, Some((wrong, "use redis://")));
        check(&redis("6.2.14", "standalone"), Single, Some((old, "redis 6.2.14")));
        // KeyDB reports itself as Redis 6.3.
        check(&redis("6.3.4", "standalone"), Single, Some((old, "6.3.4")));
        let valkey = [("server", "valkey"), ("version", "8.1.0"), ("mode", "standalone")];
        check(&valkey, Single, None);
        check(&[], Single, None);
    }
}
