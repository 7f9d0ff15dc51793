//! The commands: a file for each, all of one shape.

mod auth;
mod cl_throttle;
mod client;
mod cluster;
mod command;
mod config;
mod dbsize;
mod del;
mod discard;
mod echo;
mod exec;
mod exists;
mod hello;
mod info;
mod multi;
mod ping;
mod pttl;
mod quit;
mod readonly;
mod readwrite;
mod reset;
mod role;
mod select;
mod sentinel;
mod time;
mod tollgate_acquire;
mod tollgate_block;
mod tollgate_cancel;
mod tollgate_check;
mod tollgate_inspect;
mod tollgate_peek;
mod tollgate_penalize;
mod tollgate_refund;
mod tollgate_release;
mod tollgate_renew;
mod tollgate_reserve;
mod tollgate_reset;
mod tollgate_take;
mod tollgate_unblock;
mod ttl;
mod unlink;
mod unwatch;
mod watch;

use super::table::Command;

/// All of them, those first that are sent most.
pub(super) static COMMANDS: [Command; 43] = [
    cl_throttle::COMMAND,
    tollgate_check::COMMAND,
    tollgate_peek::COMMAND,
    tollgate_take::COMMAND,
    tollgate_reserve::COMMAND,
    tollgate_cancel::COMMAND,
    tollgate_refund::COMMAND,
    tollgate_penalize::COMMAND,
    tollgate_reset::COMMAND,
    tollgate_block::COMMAND,
    tollgate_unblock::COMMAND,
    tollgate_acquire::COMMAND,
    tollgate_renew::COMMAND,
    tollgate_release::COMMAND,
    tollgate_inspect::COMMAND,
    del::COMMAND,
    unlink::COMMAND,
    exists::COMMAND,
    ttl::COMMAND,
    pttl::COMMAND,
    multi::COMMAND,
    exec::COMMAND,
    discard::COMMAND,
    watch::COMMAND,
    unwatch::COMMAND,
    hello::COMMAND,
    auth::COMMAND,
    ping::COMMAND,
    echo::COMMAND,
    select::COMMAND,
    client::COMMAND,
    readonly::COMMAND,
    readwrite::COMMAND,
    reset::COMMAND,
    quit::COMMAND,
    info::COMMAND,
    command::COMMAND,
    config::COMMAND,
    dbsize::COMMAND,
    time::COMMAND,
    role::COMMAND,
    cluster::COMMAND,
    sentinel::COMMAND,
];
