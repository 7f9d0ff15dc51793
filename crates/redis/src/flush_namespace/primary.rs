//! Flushing a namespace on one server.

use redis::Value;
use tollgate_state::{Failure, FailureKind};

use super::Pass;
use crate::connection::{CommandError, Connection};
use crate::context::StoreContext;
use crate::keyspace::Keyspace;
use crate::url::Address;

/// A connection to a primary, for one pass.
pub(super) struct Primary<'a> {
    keyspace: &'a Keyspace,
    address: Address,
    connection: Connection,
}

/// How many keys a `SCAN` visits, which blocks the server: 1,000 of three million keys took 0.6 ms, and
/// sometimes more than 1 ms.
const SCAN_COUNT: &str = "500";
/// The maximum number of names in an `UNLINK`.
const MAX_NAMES: usize = 500;

impl<'a> Primary<'a> {
    pub(super) async fn dial(
        context: &'a StoreContext,
        address: &Address,
    ) -> Result<Self, Failure> {
        let connection = context.dialer.dial(address, || ()).await.map_err(not_executed)?;
        Ok(Primary { keyspace: &context.keyspace, address: address.clone(), connection })
    }

    pub(super) fn is_at(&self, address: &Address) -> bool {
        self.address == *address
    }

    /// Returns the node to which the slot of a tag is being migrated, if it is: then the server answers
    /// `ASK` for a name that it does not have. Returns an error if the slot has moved already.
    pub(super) async fn destination(&self, tag: &str) -> Result<Option<Address>, Failure> {
        match self.connection.command(&["UNLINK", &self.keyspace.unused_name(tag)]).await {
            Ok(_) => Ok(None),
            Err(CommandError::Server(server)) if server.code() == "ASK" => {
                let to = server.details().and_then(|detail| detail.split_once(' '));
                let to = to.and_then(|(_, to)| Address::from_redirection(to.trim(), &self.address));
                to.map(Some).ok_or_else(|| self.protocol("ASK"))
            }
            Err(CommandError::Server(server)) if server.code() == "MOVED" => {
                let message = format!("{}: the slot of {tag:?} has moved", self.address);
                Err(Failure::new(FailureKind::TryAgain, message))
            }
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Deletes all keys of the namespace on this server.
    pub(super) async fn flush(&self, pass: &mut Pass) -> Result<(), Failure> {
        let pattern = self.keyspace.pattern();
        let mut cursor = "0".to_owned();
        loop {
            let words = ["SCAN", &cursor, "MATCH", &pattern, "COUNT", SCAN_COUNT];
            let reply =
                self.connection.command(&words).await.map_err(|error| self.failure(&error))?;
            let (next, mut found) = parse_scan(reply).ok_or_else(|| self.protocol("SCAN"))?;
            // Do not rely on the pattern alone: it may match other names.
            found.retain(|name| self.keyspace.tag_in(name).is_some());
            found.sort_unstable();
            found.dedup();
            for names_of_slot in
                found.chunk_by(|a, b| self.keyspace.tag_in(a) == self.keyspace.tag_in(b))
            {
                for names in names_of_slot.chunks(MAX_NAMES) {
                    self.delete(names, pass).await?;
                }
            }
            if next == "0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// Deletes names of one slot. Keys that are being migrated are left to the next pass.
    async fn delete(&self, names: &[Vec<u8>], pass: &mut Pass) -> Result<(), Failure> {
        pass.found_any = true;
        match self.unlink(names).await {
            Ok(count) => pass.deleted += count,
            // The server is a node of a cluster, but the URL is that of a single server.
            Err(CommandError::Server(server))
                if server.code() == "CROSSSLOT" && names.len() > 1 =>
            {
                for name in names {
                    Box::pin(self.delete(std::slice::from_ref(name), pass)).await?;
                }
            }
            Err(CommandError::Server(server))
                if self.keyspace.is_partitioned() && is_migration(server.code()) =>
            {
                pass.is_migrating = true;
            }
            Err(error) => return Err(self.failure(&error)),
        }
        Ok(())
    }

    /// Deletes keys, also on a node that is importing their slot; returns how many existed.
    async fn unlink(&self, names: &[Vec<u8>]) -> Result<u64, CommandError> {
        let words: Vec<&[u8]> =
            std::iter::once(&b"UNLINK"[..]).chain(names.iter().map(Vec::as_slice)).collect();
        let reply = match self.connection.command(&words).await {
            Err(CommandError::Server(server))
                if server.code() == "MOVED" && self.keyspace.is_partitioned() =>
            {
                self.connection.command(&["ASKING"]).await?;
                self.connection.command(&words).await?
            }
            reply => reply?,
        };
        match reply {
            Value::Int(count) if count >= 0 => Ok(count.unsigned_abs()),
            _ => Err(CommandError::Lost(self.protocol("UNLINK"))),
        }
    }

    fn protocol(&self, command: &str) -> Failure {
        let message = format!("{}: invalid reply to {command}", self.address);
        Failure::new(FailureKind::Protocol, message)
    }

    fn failure(&self, error: &CommandError) -> Failure {
        let failure = not_executed(error.failure());
        let needs = match failure.kind {
            FailureKind::NoPermission | FailureKind::UnknownCommand => {
                "flushing a namespace also needs +scan and +unlink: "
            }
            _ => "",
        };
        Failure::new(failure.kind, format!("{}: {needs}{}", self.address, failure.message))
    }
}

/// Deleting is idempotent, so the outcome of a lost deletion does not matter.
fn not_executed(failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::ConnectionLost => Failure { kind: FailureKind::Unreachable, ..failure },
        _ => failure,
    }
}

fn is_migration(code: &str) -> bool {
    matches!(code, "MOVED" | "ASK" | "TRYAGAIN")
}

/// Parses the reply to `SCAN`: the next cursor and the names.
pub(crate) fn parse_scan(reply: Value) -> Option<(String, Vec<Vec<u8>>)> {
    let Value::Array(parts) = reply else { return None };
    let [Value::BulkString(cursor), Value::Array(found)] = <[Value; 2]>::try_from(parts).ok()?
    else {
        return None;
    };
    let cursor = String::from_utf8(cursor).ok()?;
    // The cursor is sent back, so it must be a number.
    cursor.parse::<u64>().ok()?;
    let name = |value| if let Value::BulkString(name) = value { Some(name) } else { None };
    Some((cursor, found.into_iter().map(name).collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_replies_to_scan_are_rejected() {
        let check = |reply: &[u8], expected: Option<(&str, &[&[u8]])>| {
            let expected = expected.map(|(cursor, names)| {
                (cursor.to_owned(), names.iter().map(|name| name.to_vec()).collect::<Vec<_>>())
            });
            let parsed = redis::parse_redis_value(reply).unwrap();
            assert_eq!(parse_scan(parsed), expected, "{}", reply.escape_ascii());
        };
        check(b"*2\r\n$1\r\n0\r\n*0\r\n", Some(("0", &[])));
        let largest = "18446744073709551615";
        let reply = format!("*2\r\n$20\r\n{largest}\r\n*2\r\n$1\r\na\r\n$2\r\n\0\n\r\n");
        check(reply.as_bytes(), Some((largest, &[b"a", b"\0\n"])));
        for reply in [
            &b"+OK\r\n"[..],
            b"*0\r\n",
            b"*1\r\n$1\r\n0\r\n",
            b"*2\r\n$1\r\nx\r\n*0\r\n",
            b"*2\r\n$0\r\n\r\n*0\r\n",
            b"*2\r\n$1\r\n0\r\n*1\r\n:1\r\n",
            b"*3\r\n$1\r\n0\r\n*0\r\n*0\r\n",
        ] {
            check(reply, None);
        }
    }
}
