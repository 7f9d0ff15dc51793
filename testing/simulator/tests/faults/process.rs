//! Pauses, crashes, slow servers, limits, logins and clocks.

use std::io::ErrorKind::{ConnectionRefused, ConnectionReset, UnexpectedEof};

use tollgate_simulator::{Data, Refusal};

use super::{assert_pending, counter, ms, run, send, text};

#[test]
fn commands_wait_for_the_one_before() {
    run(async |world, server, client| {
        server.set_execution_time(ms(10));
        let mut first = client.connect(&server).await.unwrap();
        let mut second = client.connect(&server).await.unwrap();
        first.send(&["SET", "k", "1"]).await.unwrap();
        second.send(&["SET", "k", "2"]).await.unwrap();
        first.send(&["GET", "k"]).await.unwrap();
        assert_eq!(text(first.receive().await).unwrap(), "OK");
        assert_eq!(world.elapsed(), ms(10));
        assert_eq!(text(second.receive().await).unwrap(), "OK");
        assert_eq!(world.elapsed(), ms(30));
        // The server has read both commands of the first connection at once.
        assert_eq!(text(first.receive().await).unwrap(), "1");
    });
}

#[test]
fn a_paused_server_accepts_connections_and_executes_everything_later() {
    run(async |world, server, client| {
        let mut first = client.connect(&server).await.unwrap();
        server.pause();
        first.send(&["SET", "k", "1"]).await.unwrap();
        let mut second = client.connect(&server).await.unwrap();
        second.send(&["SET", "l", "2"]).await.unwrap();
        drop(second);
        assert_pending(ms(10_000), first.receive()).await;
        assert_eq!((server.keys().len(), server.stats().accepted.len()), (0, 1));
        server.resume();
        assert_eq!(text(first.receive().await).unwrap(), "OK");
        assert_eq!(server.keys().len(), 2);
        assert_eq!(server.stats().accepted, [ms(0), ms(10_000)]);
        assert_eq!((server.connections(), world.elapsed()), (1, ms(10_000)));
    });
}

#[test]
fn a_crash_resets_connections_and_a_restart_loads_data() {
    for data in [Data::Kept, Data::Lost] {
        run(async |_, server, client| {
            let mut connection = client.connect(&server).await.unwrap();
            let call = counter(&mut connection).await;
            assert_eq!(text(connection.command(&call).await).unwrap(), "1");
            server.crash(data);
            assert_eq!(send(&mut connection, "PING").await, Err(ConnectionReset));
            assert_eq!(client.connect(&server).await.unwrap_err().kind(), ConnectionRefused);
            server.restart(ms(100));
            let mut connection = client.connect(&server).await.unwrap();
            let loading = "LOADING Redis is loading the dataset in memory";
            assert_eq!(send(&mut connection, "GET count").await.unwrap(), loading);
            assert_eq!(text(connection.command(&call).await).unwrap(), loading);
            assert!(connection.command(&["TIME"]).await.unwrap().array().len() == 2);
            tokio::time::sleep(ms(100)).await;
            let expected = if data == Data::Kept { "1" } else { "" };
            assert_eq!(send(&mut connection, "GET count").await.unwrap(), expected);
            let error = text(connection.command(&call).await).unwrap();
            assert_eq!(error, "NOSCRIPT No matching script. Please use EVAL.");
        });
    }
}

#[test]
fn a_process_continues_only_from_its_own_fault() {
    run(async |_, server, client| {
        server.restart(ms(100));
        server.resume();
        let mut connection = client.connect(&server).await.unwrap();
        assert_eq!(send(&mut connection, "SET k v").await.unwrap(), "OK");
        server.pause();
        server.restart(ms(0));
        assert_pending(ms(100), connection.command(&["PING"])).await;
        server.crash(Data::Kept);
        server.pause();
        server.resume();
        assert_eq!(client.connect(&server).await.unwrap_err().kind(), ConnectionRefused);
        server.restart(ms(0));
        assert!(client.connect(&server).await.is_ok());
    });
}

#[test]
fn a_crash_loses_the_reply_of_the_command_in_progress() {
    run(async |_, server, client| {
        server.set_execution_time(ms(10));
        let mut connection = client.connect(&server).await.unwrap();
        connection.send(&["SET", "k", "1"]).await.unwrap();
        tokio::time::sleep(ms(5)).await;
        server.crash(Data::Kept);
        assert_eq!(text(connection.receive().await), Err(ConnectionReset));
        assert_eq!(server.keys().len(), 1);
    });
}

#[test]
fn further_clients_are_rejected_with_an_error() {
    run(async |_, server, client| {
        server.set_max_clients(Some(1));
        let first = client.connect(&server).await.unwrap();
        let mut second = client.connect(&server).await.unwrap();
        let error = text(second.receive().await).unwrap();
        assert_eq!(error, "ERR max number of clients reached");
        assert_eq!(text(second.receive().await), Err(UnexpectedEof));
        let stats = server.stats();
        assert_eq!((stats.accepted.len(), stats.rejected), (1, 1));
        drop(first);
        let mut third = client.connect(&server).await.unwrap();
        assert_eq!(send(&mut third, "PING").await.unwrap(), "PONG");
    });
}

#[test]
fn refusals_begin_and_end() {
    run(async |_, server, client| {
        let mut connection = client.connect(&server).await.unwrap();
        let call = counter(&mut connection).await;
        for refusal in [Refusal::OutOfMemory, Refusal::ReadOnly, Refusal::DiskError, Refusal::Busy]
        {
            server.set_refusal(Some(refusal));
            let code = match refusal {
                Refusal::OutOfMemory => "OOM",
                Refusal::ReadOnly => "READONLY",
                Refusal::DiskError => "MISCONF",
                _ => "BUSY",
            };
            let error = text(connection.command(&call).await).unwrap();
            assert!(error.starts_with(code), "{error}");
        }
        server.set_refusal(None);
        assert_eq!(text(connection.command(&call).await).unwrap(), "1");
        assert_eq!(server.stats().scripts, 1);
    });
}

#[test]
fn flushed_scripts_are_missing() {
    run(async |_, server, client| {
        let mut connection = client.connect(&server).await.unwrap();
        let call = counter(&mut connection).await;
        assert_eq!(text(connection.command(&call).await).unwrap(), "1");
        server.flush_scripts();
        let error = text(connection.command(&call).await).unwrap();
        assert_eq!(error, "NOSCRIPT No matching script. Please use EVAL.");
        counter(&mut connection).await;
        assert_eq!(text(connection.command(&call).await).unwrap(), "2");
    });
}

#[test]
fn open_connections_stay_authenticated_until_logins_expire() {
    run(async |_, server, client| {
        let mut connection = client.connect(&server).await.unwrap();
        server.set_login("default", "secret");
        assert_eq!(send(&mut connection, "PING").await.unwrap(), "PONG");
        server.expire_logins();
        let error = "NOAUTH Authentication required.";
        assert_eq!(send(&mut connection, "PING").await.unwrap(), error);
        assert!(send(&mut connection, "AUTH wrong").await.unwrap().starts_with("WRONGPASS"));
        assert_eq!(send(&mut connection, "AUTH secret").await.unwrap(), "OK");
        assert_eq!(send(&mut connection, "PING").await.unwrap(), "PONG");
        let mut connection = client.connect(&server).await.unwrap();
        assert_eq!(send(&mut connection, "PING").await.unwrap(), error);
    });
}

#[test]
fn keys_expire_by_the_clock_of_the_server() {
    run(async |world, server, client| {
        let mut connection = client.connect(&server).await.unwrap();
        let seconds = |reply: tollgate_testkit::Reply| reply.array()[0].integer();
        let start = seconds(connection.command(&["TIME"]).await.unwrap());
        assert_eq!(u64::try_from(start).unwrap(), world.now_micros() / 1_000_000);
        assert_eq!(send(&mut connection, "SET k v PX 10000").await.unwrap(), "OK");
        tokio::time::sleep(ms(4_000)).await;
        assert_eq!(send(&mut connection, "PTTL k").await.unwrap(), "6000");
        server.set_clock_offset(-5_000_000);
        assert_eq!(send(&mut connection, "PTTL k").await.unwrap(), "11000");
        assert_eq!(seconds(connection.command(&["TIME"]).await.unwrap()), start - 1);
        server.set_clock_offset(5_999_000);
        assert_eq!(server.keys(), [(b"k".to_vec(), Some(1))]);
        server.set_clock_offset(6_000_000);
        assert_eq!(send(&mut connection, "PTTL k").await.unwrap(), "-2");
        assert!(server.keys().is_empty());
    });
}
