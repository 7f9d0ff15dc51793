//! The fast path of pipelined checks does not allocate.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tollgate::MemoryLimiter;
use tollgate_daemon::{Config, RespReplay};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A pipeline of the same command.
fn pipeline(args: &[&str]) -> Vec<u8> {
    let mut command = format!("*{}\r\n", args.len());
    for arg in args {
        command.push_str(&format!("${}\r\n{arg}\r\n", arg.len()));
    }
    command.repeat(100).into_bytes()
}

/// One test, so that no other thread allocates while it counts.
#[test]
fn pipelined_checks_of_a_known_key_allocate_nothing() {
    let config = Config::from_yaml(
        "policies: { api: { limits: [10/s burst 20] }, tracked: { limits: [10/s burst 20], track: { \
         recent: 20, usage: true, timeline: 1h by 1m } } }",
    )
    .unwrap();
    let mut client = RespReplay::new(&config, MemoryLimiter::new()).unwrap();
    for args in [
        &["CL.THROTTLE", "user:42", "15", "30", "60", "1"][..],
        &["TOLLGATE.CHECK", "api", "user:42"],
        &["TOLLGATE.CHECK", "api", "user:42", "COST", "2"],
        &["TOLLGATE.CHECK", "tracked", "user:42"],
        &["TOLLGATE.CHECK", "tracked", "user:42", "NOTE", "GET /search"],
    ] {
        let commands = pipeline(args);
        let mut replies = Vec::new();
        // The key becomes known, and the buffers reach their size.
        for _ in 0..3 {
            replies.clear();
            client.send_into(&commands, &mut replies);
        }
        replies.clear();
        let region = Region::new(ALLOCATOR);
        client.send_into(&commands, &mut replies);
        let stats = region.change();
        assert!(replies.starts_with(b"*"), "{:?}", String::from_utf8_lossy(&replies));
        assert_eq!((stats.allocations, stats.reallocations), (0, 0), "{args:?}");
    }
}
