//! Erasing what one server holds.

use redis::Value;
use tollgate_store::{Failure, FailureKind};

use super::Pass;
use crate::link::{Fault, Link};
use crate::names::Names;
use crate::node::Common;
use crate::url::Address;

/// A connection to a server, for one pass.
pub(super) struct Primary<'a> {
    names: &'a Names,
    address: Address,
    link: Link,
}

/// How many keys the server looks at in one call. It answers nobody else meanwhile: with a thousand
/// for 0.6 ms, of three million keys, and now and then for more than one.
const LOOKED_AT: &str = "500";
/// The most names in one deletion.
const MAX_NAMES: usize = 500;

impl<'a> Primary<'a> {
    pub(super) async fn dial(common: &'a Common, address: &Address) -> Result<Self, Failure> {
        let link = common.dialer.dial(address, || ()).await.map_err(harmless)?;
        Ok(Primary { names: &common.names, address: address.clone(), link })
    }

    pub(super) fn is_at(&self, address: &Address) -> bool {
        self.address == *address
    }

    /// Where the slot of a tag is just being moved to, if it is: a server answers so for a name that
    /// it does not have. It is an error if the slot is another's already.
    pub(super) async fn destination(&self, tag: &str) -> Result<Option<Address>, Failure> {
        match self.link.command(&["UNLINK", &self.names.of_nothing(tag)]).await {
            Ok(_) => Ok(None),
            Err(Fault::Server(server)) if server.code() == "ASK" => {
                let to = server.details().and_then(|detail| detail.split_once(' '));
                let to = to.and_then(|(_, to)| Address::of_redirection(to.trim(), &self.address));
                to.map(Some).ok_or_else(|| self.protocol("ASK"))
            }
            Err(Fault::Server(server)) if server.code() == "MOVED" => {
                let message = format!("{}: the slot of {tag:?} has moved", self.address);
                Err(Failure::new(FailureKind::TryAgain, message))
            }
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// Deletes all names of the namespace that are here.
    pub(super) async fn erase(&self, pass: &mut Pass) -> Result<(), Failure> {
        let pattern = self.names.pattern();
        let mut cursor = "0".to_owned();
        loop {
            let words = ["SCAN", &cursor, "MATCH", &pattern, "COUNT", LOOKED_AT];
            let reply = self.link.command(&words).await.map_err(|error| self.failure(&error))?;
            let (next, mut found) = scanned(reply).ok_or_else(|| self.protocol("SCAN"))?;
            // What is erased is decided here, whatever the server takes the pattern for.
            found.retain(|found| self.names.tag_in(found).is_some());
            found.sort_unstable();
            found.dedup();
            for of_one_slot in found.chunk_by(|a, b| self.names.tag_in(a) == self.names.tag_in(b)) {
                for names in of_one_slot.chunks(MAX_NAMES) {
                    self.delete(names, pass).await?;
                }
            }
            if next == "0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// Deletes names of one slot. Those that are on the move are left to the next pass.
    async fn delete(&self, names: &[Vec<u8>], pass: &mut Pass) -> Result<(), Failure> {
        pass.found_any = true;
        match self.unlink(names).await {
            Ok(count) => pass.erased += count,
            // A node of a cluster is taken for a server of its own.
            Err(Fault::Server(server)) if server.code() == "CROSSSLOT" && names.len() > 1 => {
                for name in names {
                    Box::pin(self.delete(std::slice::from_ref(name), pass)).await?;
                }
            }
            Err(Fault::Server(server))
                if self.names.has_groups() && is_on_the_move(server.code()) =>
            {
                pass.is_moving = true;
            }
            Err(error) => return Err(self.failure(&error)),
        }
        Ok(())
    }

    /// How many of the names there were. One who is just being given their slot deletes them too.
    async fn unlink(&self, names: &[Vec<u8>]) -> Result<u64, Fault> {
        let words: Vec<&[u8]> =
            std::iter::once(&b"UNLINK"[..]).chain(names.iter().map(Vec::as_slice)).collect();
        let reply = match self.link.command(&words).await {
            Err(Fault::Server(server)) if server.code() == "MOVED" && self.names.has_groups() => {
                self.link.command(&["ASKING"]).await?;
                self.link.command(&words).await?
            }
            reply => reply?,
        };
        match reply {
            Value::Int(int) => Ok(u64::try_from(int).unwrap_or(0)),
            _ => Err(Fault::Broken(self.protocol("UNLINK"))),
        }
    }

    fn protocol(&self, command: &str) -> Failure {
        let message = format!("{}: no reply that {command} has", self.address);
        Failure::new(FailureKind::Protocol, message)
    }

    fn failure(&self, fault: &Fault) -> Failure {
        let failure = harmless(fault.failure());
        let needs = match failure.kind {
            FailureKind::NoPermission | FailureKind::UnknownCommand => {
                "to erase a namespace the user needs +scan and +unlink besides: "
            }
            _ => "",
        };
        Failure::new(failure.kind, format!("{}: {needs}{}", self.address, failure.message))
    }
}

/// What is deleted again is not there any more, so nothing is unknown of a deletion.
fn harmless(failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::ConnectionLost => Failure { kind: FailureKind::Unreachable, ..failure },
        _ => failure,
    }
}

fn is_on_the_move(code: &str) -> bool {
    matches!(code, "MOVED" | "ASK" | "TRYAGAIN")
}

/// Where to go on, and the names found.
fn scanned(reply: Value) -> Option<(String, Vec<Vec<u8>>)> {
    let Value::Array(parts) = reply else { return None };
    let [Value::BulkString(cursor), Value::Array(found)] = <[Value; 2]>::try_from(parts).ok()?
    else {
        return None;
    };
    let cursor = String::from_utf8(cursor).ok()?;
    // A server's word goes back to it, as long as it is a number.
    cursor.parse::<u64>().ok()?;
    let name = |x| if let Value::BulkString(bulk_string) = x { Some(bulk_string) } else { None };
    Some((cursor, found.into_iter().map(name).collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_answer_of_a_scan_is_none() {
        let check = |reply: &[u8], expected: Option<(&str, &[&[u8]])>| {
            let expected = expected.map(|(cursor, names)| {
                (cursor.to_owned(), names.iter().map(|name| name.to_vec()).collect::<Vec<_>>())
            });
            let parsed = redis::parse_redis_value(reply).unwrap();
            assert_eq!(scanned(parsed), expected, "{}", reply.escape_ascii());
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
