//! The state of a cluster as one node reports it.

use std::ops::RangeInclusive;

use crate::Server;

/// One line of `CLUSTER NODES`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) id: String,
    pub(crate) port: u16,
    /// The id of its primary; `None` for a primary.
    pub(crate) primary: Option<String>,
    pub(crate) has_failed: bool,
    /// In the handshake, or of unknown address.
    pub(crate) is_new: bool,
    /// First and last of each range. Slots in migration are listed only by the source and the target,
    /// and are omitted here.
    pub(crate) slots: Vec<(u16, u16)>,
}

impl Member {
    pub(crate) fn owns(&self, slot: u16) -> bool {
        self.slots.iter().any(|(first, last)| RangeInclusive::new(first, last).contains(&&slot))
    }
}

/// All members according to `server`, sorted; `None` if it does not reply.
pub(crate) fn view(server: &Server) -> Option<Vec<Member>> {
    let nodes = server.try_command(&["CLUSTER", "NODES"]).ok().filter(|nodes| !nodes.is_error())?;
    let mut members: Vec<Member> = nodes.text().lines().filter_map(member).collect();
    members.sort();
    Some(members)
}

/// Runs a command; panics if the reply is an error.
#[track_caller]
pub(super) fn execute(node: &Server, args: &[&str]) {
    node.command(args).expect_no_error(&args.join(" "));
}

/// `ID HOST:PORT@BUS[,NAME] FLAGS PRIMARY PING PONG EPOCH LINK SLOTS…`
fn member(line: &str) -> Option<Member> {
    let mut fields = line.split(' ');
    let id = fields.next()?.to_owned();
    let port = fields.next()?.split('@').next()?.rsplit(':').next()?.parse().ok()?;
    let flags: Vec<&str> = fields.next()?.split(',').collect();
    let primary = fields.next().filter(|primary| *primary != "-").map(String::from);
    Some(Member {
        id,
        port,
        primary,
        has_failed: flags.contains(&"fail"),
        is_new: flags.contains(&"handshake") || flags.contains(&"noaddr"),
        slots: fields.skip(4).filter_map(range).collect(),
    })
}

fn range(field: &str) -> Option<(u16, u16)> {
    // A range of one slot is written as one number.
    let (first, last) = field.split_once('-').unwrap_or((field, field));
    Some((first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cluster_nodes_are_parsed() {
        let primary = member(
            "e7d1 127.0.0.1:30001@31001,host myself,master,fail - 0 0 1 connected 0-5460 7 [93-<-2]",
        );
        let expected = Member {
            id: "e7d1".to_owned(),
            port: 30001,
            primary: None,
            has_failed: true,
            is_new: false,
            slots: vec![(0, 5460), (7, 7)],
        };
        assert!(expected.owns(5460) && expected.owns(7) && !expected.owns(5461));
        assert_eq!(primary, Some(expected));
        let replica =
            member("07c3 127.0.0.1:30004@31004 slave,fail? e7d1 0 1 4 connected").unwrap();
        assert_eq!(replica.primary.as_deref(), Some("e7d1"));
        assert!(!replica.has_failed && replica.slots.is_empty());
        assert!(member("5f01 :0@0 master,noaddr - 0 0 0 disconnected").unwrap().is_new);
    }
}
