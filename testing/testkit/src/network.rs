//! Networks of hosts between which packets are lost or delayed.

use std::fs;
use std::process::{self, Command, Output};
use std::time::Duration;

use crate::program;

/// Hosts on one bridge: a network namespace each, with a virtual Ethernet device. The test itself is
/// connected to the bridge as well. Everything is deleted on drop; what a killed test left behind is
/// deleted when the next network is created.
///
/// Declare it before the servers on it, so that they end first.
#[derive(Debug)]
pub struct Network {
    /// The third byte of the addresses.
    subnet: u8,
    hosts: u8,
}

/// A host on which a server runs.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) namespace: String,
    pub(crate) address: String,
}

/// The names of bridges begin with this, followed by the subnet. A bridge reserves its subnet.
const PREFIX: &str = "tollgate";
const SUBNETS: std::ops::Range<u8> = 100..250;

impl Network {
    /// Creates a network. Reports that the test is skipped if this user may not, or if the program `ip`
    /// is missing.
    #[track_caller]
    pub fn create(hosts: u8) -> Option<Self> {
        if program::find_on_path("ip").is_none() {
            let remedy = "on Debian or Ubuntu: sudo apt-get install iproute2";
            program::report_missing("ip", remedy, true);
            return None;
        }
        delete_stale();
        let is_reserved = |subnet: &u8| succeeds(&format!("link add {PREFIX}{subnet} type bridge"));
        let Some(subnet) = SUBNETS.into_iter().find(is_reserved) else {
            let output = ip(&format!("link add {PREFIX}0 type bridge"));
            program::report_skipped(&format!("no network can be created: {}", error_of(&output)));
            return None;
        };
        // From here on, an error drops the network.
        let network = Network { subnet, hosts };
        let bridge = network.bridge();
        execute(&format!("link set {bridge} alias {}", process::id()));
        execute(&format!("addr add {}/24 dev {bridge}", network.address(0)));
        execute(&format!("link set {bridge} up"));
        (0..hosts).for_each(|index| network.add_host(index));
        Some(network)
    }

    fn add_host(&self, index: u8) {
        let Host { namespace, address } = self.host(index);
        let (bridge, device) = (self.bridge(), self.device(index));
        execute(&format!("netns add {namespace}"));
        execute(&format!("link add {device} type veth peer name eth0 netns {namespace}"));
        execute(&format!("link set {device} master {bridge} up"));
        execute(&format!("-n {namespace} addr add {address}/24 dev eth0"));
        execute(&format!("-n {namespace} link set eth0 up"));
        execute(&format!("-n {namespace} link set lo up"));
    }

    /// Loses all packets from and to a host.
    #[track_caller]
    pub fn isolate(&self, index: u8) {
        execute(&format!("link set {} nomaster", self.device(index)));
    }

    /// Ends the isolation of a host.
    #[track_caller]
    pub fn reconnect(&self, index: u8) {
        execute(&format!("link set {} master {}", self.device(index), self.bridge()));
    }

    /// Loses the packets that one host sends to another. Others reach it.
    #[track_caller]
    pub fn separate(&self, from: u8, to: u8) {
        let (from, to) = (self.host(from), self.host(to));
        // Nothing has this hardware address.
        let nothing = "lladdr 02:00:00:00:00:01 dev eth0 nud permanent";
        execute(&format!("-n {} neigh replace {} {nothing}", from.namespace, to.address));
    }

    /// Ends a separation.
    #[track_caller]
    pub fn reunite(&self, from: u8, to: u8) {
        let (from, to) = (self.host(from), self.host(to));
        execute(&format!("-n {} neigh del {} dev eth0", from.namespace, to.address));
    }

    /// A command that runs a program on a host. Its arguments follow.
    pub fn command(&self, index: u8, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.host(index).namespace, program]);
        command
    }

    /// The IP address of a host.
    pub fn address_of(&self, index: u8) -> String {
        self.host(index).address
    }

    /// Delays all packets to a host; zero ends it. Returns whether the kernel supports that, and reports
    /// otherwise that the test is skipped.
    #[must_use]
    pub fn delay(&self, index: u8, delay: Duration) -> bool {
        let device = self.device(index);
        let netem = format!("qdisc replace dev {device} root netem delay {}us", delay.as_micros());
        let output = run("tc", &netem);
        if !output.status.success() {
            program::report_skipped(&format!("packets cannot be delayed: {}", error_of(&output)));
        }
        output.status.success()
    }

    pub(crate) fn len(&self) -> u8 {
        self.hosts
    }

    pub(crate) fn host(&self, index: u8) -> Host {
        let namespace = format!("{}-{index}", self.bridge());
        Host { namespace, address: self.address(index + 1) }
    }

    fn address(&self, number: u8) -> String {
        format!("10.213.{}.{}", self.subnet, number + 1)
    }

    fn bridge(&self) -> String {
        format!("{PREFIX}{}", self.subnet)
    }

    fn device(&self, index: u8) -> String {
        format!("{}-{index}", self.bridge())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for index in 0..self.hosts {
            // The host may not exist, if creating the network failed.
            ip(&format!("link del {}", self.device(index)));
            ip(&format!("netns del {}", self.host(index).namespace));
        }
        ip(&format!("link del {}", self.bridge()));
    }
}

/// Deletes the networks of processes that have ended.
fn delete_stale() {
    for subnet in SUBNETS {
        let owner = fs::read_to_string(format!("/sys/class/net/{PREFIX}{subnet}/ifalias"));
        // A network without an owner is being created.
        let Some(owner) = owner.ok().filter(|owner| !owner.trim().is_empty()) else { continue };
        if !fs::exists(format!("/proc/{}", owner.trim())).is_ok_and(|exists| exists) {
            let device = |index: &u8| format!("/sys/class/net/{PREFIX}{subnet}-{index}");
            let is_missing = |index: &u8| !fs::exists(device(index)).is_ok_and(|exists| exists);
            // The process may have ended between the namespace of the last host and its device.
            let hosts = (0..u8::MAX).find(is_missing).unwrap_or(0) + 1;
            drop(Network { subnet, hosts });
        }
    }
}

fn ip(arguments: &str) -> Output {
    run("ip", arguments)
}

fn run(program: &str, arguments: &str) -> Output {
    let output = Command::new(program).args(arguments.split(' ')).output();
    output.unwrap_or_else(|error| panic!("{program} does not start: {error}"))
}

fn succeeds(arguments: &str) -> bool {
    ip(arguments).status.success()
}

#[track_caller]
fn execute(arguments: &str) {
    let output = ip(arguments);
    assert!(output.status.success(), "ip {arguments}: {}", error_of(&output));
}

fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}
