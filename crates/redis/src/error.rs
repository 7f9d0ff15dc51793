//! What servers and sockets say, as failures of the store.

use redis::{ErrorKind, RedisError, ServerError};
use tollgate_store::{Failure, FailureKind, StoreError};

/// The server said that it will not; nothing was executed, or a script ended with an error.
pub(crate) fn of_server(error: &ServerError) -> Failure {
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
            let message = "it is a node of a cluster: write redis+cluster:// in place of redis://";
            return Failure::new(FailureKind::WrongTopology, message);
        }
        _ => of_text(details),
    };
    Failure::new(kind, format!("{code} {details}"))
}

/// What errors mean that have no code of their own.
fn of_text(details: &str) -> FailureKind {
    let says = |text: &str| details.contains(text);
    if says("ACL failure") || says("user executing the script can't") {
        FailureKind::NoPermission
    } else if says("unknown command") || says("Unknown subcommand") || says("unknown subcommand") {
        FailureKind::UnknownCommand
    } else if says("cluster support disabled") {
        FailureKind::WrongTopology
    } else if says("max number of clients") {
        FailureKind::Overloaded
    } else if ["invalid password", "without any password", "unauthenticated"]
        .iter()
        .any(|x| says(x))
    {
        FailureKind::WrongPassword
    } else if says("user_script") {
        FailureKind::VerificationFailed
    } else {
        FailureKind::Rejected
    }
}

/// A call failed that was, or may have been, sent.
pub(crate) fn of_call(error: RedisError) -> Failure {
    of(error, FailureKind::ConnectionLost)
}

/// A connection could not be made.
pub(crate) fn of_connect(error: RedisError) -> Failure {
    of(error, FailureKind::Unreachable)
}

fn of(error: RedisError, of_sockets: FailureKind) -> Failure {
    let kind = match error.kind() {
        ErrorKind::AuthenticationFailed => FailureKind::WrongPassword,
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => FailureKind::Protocol,
        ErrorKind::Server(_) => FailureKind::Rejected,
        _ => of_sockets,
    };
    let message = error.to_string();
    match ServerError::try_from(error) {
        Ok(value) => of_server(&value),
        _ => Failure::new(kind, message),
    }
}

/// The reply is none that the script can give, in this part.
pub(crate) fn protocol(what: &str) -> StoreError {
    StoreError::unavailable(FailureKind::Protocol, what)
}

/// The key was written by a newer version.
pub(crate) fn schema() -> StoreError {
    StoreError::unavailable(FailureKind::Schema, "")
}

/// The script and the library decided differently about this.
pub(crate) fn disagreement(what: &str) -> StoreError {
    StoreError::unavailable(FailureKind::VerificationFailed, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reply: &str, expected: FailureKind) {
        let value = redis::parse_redis_value(format!("{reply}\r\n").as_bytes()).unwrap();
        let redis::Value::ServerError(error) = value else { panic!("{value:?}") };
        let failure = of_server(&error);
        assert_eq!(failure.kind, expected, "{reply}");
        assert!(failure.kind.was_not_executed() || expected == FailureKind::VerificationFailed);
        let said = failure.to_string();
        assert!(said.contains(&reply[1..6]) || expected == FailureKind::WrongTopology, "{said}");
    }

    #[test]
    fn each_error_of_a_server_has_its_kind() {
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
        // The script is longer than what a server reads before the password.
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
