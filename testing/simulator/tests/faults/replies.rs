//! Faults of replies, and the counters.

use std::io::ErrorKind::ConnectionReset;

use tollgate_simulator::ReplyFault;
use tollgate_testkit::Reply;

use super::{assert_pending, counter, ms, run, send, text};

#[test]
fn a_cut_reply_was_executed() {
    run(async |_, server, client| {
        let mut connection = client.connect(&server).await.unwrap();
        let call = counter(&mut connection).await;
        server.fail_reply(ReplyFault::Cut);
        // Only scripts are affected.
        assert_eq!(send(&mut connection, "PING").await.unwrap(), "PONG");
        assert_eq!(text(connection.command(&call).await), Err(ConnectionReset));
        let mut connection = client.connect(&server).await.unwrap();
        assert_eq!(text(connection.command(&call).await).unwrap(), "2");
    });
}

#[test]
fn a_truncated_reply_ends_in_the_middle() {
    run(async |_, server, client| {
        let mut connection = client.connect(&server).await.unwrap();
        let call = counter(&mut connection).await;
        server.fail_reply(ReplyFault::Truncate);
        connection.send(&call).await.unwrap();
        assert_eq!(text(connection.receive().await), Err(ConnectionReset));
        assert_eq!(server.calls()[0].reply, Reply::Integer(1));
    });
}

#[test]
fn after_a_stalled_reply_no_reply_arrives() {
    run(async |_, server, client| {
        let mut connection = client.connect(&server).await.unwrap();
        let call = counter(&mut connection).await;
        server.fail_reply(ReplyFault::Stall);
        connection.send(&call).await.unwrap();
        connection.send(&call).await.unwrap();
        assert_pending(ms(100_000), connection.receive()).await;
        assert_eq!((server.stats().scripts, server.connections()), (2, 1));
    });
}

#[test]
fn a_delayed_reply_delays_those_behind_it() {
    run(async |world, server, client| {
        let mut connection = client.connect(&server).await.unwrap();
        let call = counter(&mut connection).await;
        server.fail_reply(ReplyFault::Delay(ms(70)));
        connection.send(&call).await.unwrap();
        connection.send(&call).await.unwrap();
        let mut other = client.connect(&server).await.unwrap();
        assert_eq!(text(other.command(&call).await).unwrap(), "3");
        assert_eq!(world.elapsed(), ms(0));
        assert_eq!(text(connection.receive().await).unwrap(), "1");
        assert_eq!(world.elapsed(), ms(70));
        assert_eq!(text(connection.receive().await).unwrap(), "2");
        assert_eq!(world.elapsed(), ms(70));
    });
}

#[test]
fn commands_and_scripts_are_counted() {
    run(async |world, server, client| {
        let _other = world.start_client();
        let mut connection = client.connect(&server).await.unwrap();
        let call = counter(&mut connection).await;
        tokio::time::sleep(ms(7)).await;
        server.fail_reply(ReplyFault::Delay(ms(1)));
        connection.command(&call).await.unwrap();
        connection.command(&["EVALSHA", "none", "0"]).await.unwrap();
        connection.command(&["client", "ID"]).await.unwrap();
        connection.command(&["FOO"]).await.unwrap();
        let stats = server.stats();
        let commands = [("", 1), ("client|id", 1), ("evalsha", 2), ("script|load", 1)];
        assert_eq!(stats.commands.into_iter().collect::<Vec<_>>(), commands);
        assert_eq!(stats.scripts, 1);
        let calls = server.calls();
        assert_eq!((calls[0].at, calls[0].client), (ms(7), client.index()));
        assert_eq!((&calls[0].keys, calls[0].arguments.len()), (&vec![b"count".to_vec()], 0));
        assert_eq!(calls[0].reply, Reply::Integer(1));
        assert_eq!(calls[0].fault, Some(ReplyFault::Delay(ms(1))));
    });
}
