//! Errors of opening a store, and the conversion of other errors to failures of the store.

use std::fmt;

use redis::{ErrorKind, RedisError, ServerError};
use tollgate_state::{Failure, FailureKind, OpenError, StoreError};

/// A part of the URL is invalid.
pub(crate) fn invalid_part(part: &'static str, value: &str, remedy: &'static str) -> OpenError {
    OpenError::Url { part, value: Some(value.into()), remedy }
}

/// A part of the URL that may contain a secret is invalid.
pub(crate) const fn invalid_secret(part: &'static str, remedy: &'static str) -> OpenError {
    OpenError::Url { part, value: None, remedy }
}

/// An option is invalid.
pub(crate) fn invalid_option(
    name: &'static str,
    value: impl fmt::Display,
    remedy: &'static str,
) -> OpenError {
    OpenError::Option { name, value: value.to_string().into(), remedy }
}

/// Converts an error of the server. Nothing was executed, or the script failed.
pub(crate) fn from_server(error: &ServerError) -> Failure {
    let (code, details) = (error.code(), error.details().unwrap_or_default());
    let kind = match code {
        "LOADING" => FailureKind::Loading,
        "READONLY" => FailureKind::ReadOnly,
        "OOM" => FailureKind::OutOfMemory,
        "MISCONF" => FailureKind::Misconfigured,
        "BUSY" => FailureKind::Busy,
        "CLUSTERDOWN" => FailureKind::ClusterDown,
        "MASTERDOWN" => FailureKind::MasterDown,
        "NOREPLICAS" => FailureKind::NoReplicas,
        "NOPERM" => FailureKind::NoPermission,
        "WRONGPASS" | "NOAUTH" => FailureKind::WrongPassword,
        "CROSSSLOT" => FailureKind::CrossSlot,
        "TRYAGAIN" => FailureKind::TryAgain,
        "MOVED" | "ASK" => {
            let message =
                "the server is a node of a cluster: use redis+cluster:// in place of redis://";
            return Failure::new(FailureKind::WrongTopology, message);
        }
        _ => from_text(details),
    };
    Failure::new(kind, format!("{code} {details}"))
}

/// Returns whether the server does not have the script, so that it executed nothing.
pub(crate) fn is_script_missing(error: &ServerError) -> bool {
    error.code() == "NOSCRIPT" || error.details() == Some("Function not found")
}

/// Classifies an error without a specific code.
fn from_text(details: &str) -> FailureKind {
    let contains = |text: &str| details.contains(text);
    if contains("ACL failure") || contains("user executing the script can't") {
        FailureKind::NoPermission
    } else if contains("unknown command")
        || contains("Unknown subcommand")
        || contains("unknown subcommand")
    {
        FailureKind::UnknownCommand
    } else if contains("cluster support disabled") {
        FailureKind::WrongTopology
    } else if contains("max number of clients") {
        FailureKind::Overloaded
    } else if ["invalid password", "without any password", "unauthenticated"]
        .iter()
        .any(|text| contains(text))
    {
        FailureKind::WrongPassword
    } else if contains("Error compiling") {
        // The server does not know the first line of the script.
        FailureKind::UnsupportedServer
    } else if contains("user_script") || contains("user_function") {
        FailureKind::VerificationFailed
    } else {
        FailureKind::Rejected
    }
}

/// Converts an error of a call that may have been sent.
pub(crate) fn from_call(error: RedisError) -> Failure {
    convert(error, FailureKind::ConnectionLost)
}

/// Converts an error of an attempt to connect.
pub(crate) fn from_connect(error: RedisError) -> Failure {
    convert(error, FailureKind::Unreachable)
}

fn convert(error: RedisError, default: FailureKind) -> Failure {
    let kind = match error.kind() {
        ErrorKind::AuthenticationFailed => FailureKind::WrongPassword,
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => FailureKind::Protocol,
        ErrorKind::Server(_) => FailureKind::Rejected,
        _ => default,
    };
    let message = error.to_string();
    match ServerError::try_from(error) {
        Ok(error) => from_server(&error),
        _ => Failure::new(kind, message),
    }
}

/// The reply is invalid in this part.
pub(crate) fn protocol(what: &str) -> StoreError {
    StoreError::unavailable(FailureKind::Protocol, what)
}

/// A newer version wrote the key.
pub(crate) fn schema() -> StoreError {
    StoreError::unavailable(FailureKind::Schema, "")
}

/// The key needs another type, which it cannot get where it is.
pub(crate) fn migrating() -> StoreError {
    StoreError::unavailable(FailureKind::TryAgain, "the slot of the key is being migrated")
}

/// The script and this library decided differently about this.
pub(crate) fn verification(what: &str) -> StoreError {
    StoreError::unavailable(FailureKind::VerificationFailed, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reply: &str, expected: FailureKind) {
        let value = redis::parse_redis_value(format!("{reply}\r\n").as_bytes()).unwrap();
        let redis::Value::ServerError(error) = value else { panic!("{value:?}") };
        let failure = from_server(&error);
        assert_eq!(failure.kind, expected, "{reply}");
        assert!(failure.kind.was_not_executed() || expected == FailureKind::VerificationFailed);
        let message = failure.to_string();
        assert!(
            message.contains(&reply[1..6]) || expected == FailureKind::WrongTopology,
            "{message}"
        );
    }

    #[test]
    fn server_errors_are_classified() {
        check("-LOADING Redis is loading the dataset in memory", FailureKind::Loading);
        check("-READONLY You can't write against a read only replica.", FailureKind::ReadOnly);
        check("-OOM command not allowed when used memory > 'maxmemory'.", FailureKind::OutOfMemory);
        check("-MISCONF Redis is configured to save RDB snapshots", FailureKind::Misconfigured);
        check("-BUSY Redis is busy running a script.", FailureKind::Busy);
        check("-CLUSTERDOWN Hash slot not served", FailureKind::ClusterDown);
        check("-MASTERDOWN Link with MASTER is down", FailureKind::MasterDown);
        check("-NOREPLICAS Not enough good replicas to write.", FailureKind::NoReplicas);
        check("-NOPERM this user has no permissions to run 'evalsha'", FailureKind::NoPermission);
        check("-ERR ACL failure in script: no permissions to run 'set'", FailureKind::NoPermission);
        let script = "-ERR The user executing the script can't run this command or subcommand";
        check(script, FailureKind::NoPermission);
        check("-NOAUTH Authentication required.", FailureKind::WrongPassword);
        // The script exceeds what a server accepts before authentication.
        check("-ERR Protocol error: unauthenticated bulk length", FailureKind::WrongPassword);
        check("-WRONGPASS invalid username-password pair", FailureKind::WrongPassword);
        check("-CROSSSLOT Keys in request don't hash to the same slot", FailureKind::CrossSlot);
        check("-TRYAGAIN Multiple keys request during rehashing", FailureKind::TryAgain);
        check("-MOVED 1 127.0.0.1:7000", FailureKind::WrongTopology);
        check("-ERR This instance has cluster support disabled", FailureKind::WrongTopology);
        check("-ERR unknown command 'EVALSHA', with args", FailureKind::UnknownCommand);
        check("-ERR max number of clients reached", FailureKind::Overloaded);
        check("-ERR x script: f_1, on @user_script:3.", FailureKind::VerificationFailed);
        check("-ERR DB index is out of range", FailureKind::Rejected);
    }
}
