//! Repeated `kill -9` during saves: a store always restarts with all charges made before the last
//! finished save started, and with no charge that was not made.
//!
//! The parent runs this program as a child process, the victim, which reports each step on its
//! standard output, and kills it after some lines. The clock does not advance far enough for any
//! recovery. `TOLLGATE_CRASHES` sets the number of kills.
#![cfg(unix)]
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used, reason = "a test")]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use fastrand::Rng;
use tollgate_algorithms::{
    Check, Cost, Decision, Id, Micros, Operation, Policy, Reason, Request, Timestamp,
};
use tollgate_state::{ManualClock, MemoryStore, SnapshotDir};

const DIR: &str = "TOLLGATE_CRASH_DIR";
const LIFE: &str = "TOLLGATE_CRASH_LIFE";
const KEYS: usize = 240;

/// Limits that do not recover during the test; key i uses limit i, modulo their number.
const LIMITS: &[&str] = &[
    "1/d burst 1000000",
    "1000000/d fixed",
    "1000000/d log",
    "1000000/d sliding",
    "1000000/d sliding by 1h",
    "10000 concurrent lease 1d",
];
/// Keys with this number, modulo 6, are blocked instead of charged.
const BLOCKED: usize = 5 * LIMITS.len();

// The victim.

struct Victim {
    clock: ManualClock,
    store: MemoryStore,
    policies: Vec<Policy>,
}

impl Victim {
    fn execute(&self, operation: Operation, key: usize, cost: u32) -> Decision {
        let policy = &self.policies[key % LIMITS.len()];
        let bytes = key.to_string();
        let checks = [Check { policy, key: bytes.as_bytes(), cost: Cost::from(cost) }];
        let request = Request { operation, checks: &checks, request_id: None };
        self.store.decide_now(&request).unwrap().decisions.remove(0)
    }

    /// Returns how often a key was charged, or whether it is blocked.
    fn count(&self, key: usize) -> u64 {
        let peek = self.execute(Operation::Peek, key, 1);
        if key < BLOCKED {
            return u64::from(peek.reason == Reason::Blocked);
        }
        peek.capacity - peek.remaining
    }

    fn charge(&self, key: usize, random: &mut Rng) {
        self.clock.advance(Micros::new(1));
        let operation = match key {
            0..BLOCKED => Operation::Block { span: None },
            _ => Operation::Check { lease: Some(Id::from_u128(random.u128(..))) },
        };
        report(&format!("begin {key}"));
        // In a long run the places of requests in flight run out.
        let charged = self.execute(operation, key, 1).allowed || key < BLOCKED;
        report(&format!("{} {key}", if charged { "done" } else { "denied" }));
    }
}

/// Writes a line at once.
fn report(line: &str) {
    std::io::stdout().write_all(format!("\n{line}\n").as_bytes()).unwrap();
}

/// The body of the child process: charges and saves until it is killed.
#[test]
fn victim() {
    let Some(dir) = env::var_os(DIR) else { return };
    let life: u64 = env::var(LIFE).unwrap().parse().unwrap();
    let clock = ManualClock::at(Timestamp::from_micros((1_763_650_000 + life) * 1_000_000));
    let dir = SnapshotDir::open(dir).unwrap();
    let (store, restored) = dir.restore(MemoryStore::builder().clock(clock.clone())).unwrap();
    assert_eq!(restored.quarantined, None);
    let policies = LIMITS.iter().map(|limit| limit.parse().unwrap()).collect();
    let victim = Victim { clock, store, policies };
    for key in 0..KEYS {
        match victim.count(key) {
            0 => {}
            count => report(&format!("has {key} {count}")),
        }
    }
    report("ready");
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Rng::with_seed(life);
            loop {
                let key = random.usize(..KEYS);
                victim.charge(key, &mut random);
            }
        });
        loop {
            report("save");
            dir.save(&victim.store).unwrap();
            report("saved");
        }
    });
}

// The parent.

/// What the victim has reported about its keys.
#[derive(Default)]
struct Ledger {
    /// The maximum number of charges.
    begun: Vec<u64>,
    done: Vec<u64>,
    /// The charges made when the save in progress started.
    at_save: Option<Vec<u64>>,
    /// The minimum contents of the last finished save.
    saved: Vec<u64>,
    saves: u32,
}

impl Ledger {
    fn read_line(&mut self, line: &str) {
        let mut words = line.split(' ');
        let word = words.next().unwrap_or_default();
        let key = words.next().and_then(|word| word.parse::<usize>().ok());
        match (word, key) {
            ("begin", Some(key)) => self.begun[key] += 1,
            ("done", Some(key)) => self.done[key] += 1,
            ("denied", Some(key)) => self.begun[key] -= 1,
            ("save", None) => self.at_save = Some(self.done.clone()),
            ("saved", None) => {
                self.saved = self.at_save.take().unwrap();
                self.saves += 1;
            }
            // The test harness has its own lines.
            _ => {}
        }
    }

    /// Compares the state after a restart with the bounds, and continues from there. Returns how
    /// many charges were lost.
    fn restart(&mut self, has: Vec<u64>) -> u64 {
        for (key, count) in has.iter().enumerate() {
            let most = if key < BLOCKED { 1 } else { u64::MAX };
            let (saved, begun) = (self.saved[key].min(most), self.begun[key].min(most));
            assert!((saved..=begun).contains(count), "{key}: {saved} <= {count} <= {begun}");
        }
        let lost = self.done.iter().zip(&has).map(|(done, has)| done.saturating_sub(*has)).sum();
        (self.begun, self.done, self.saved) = (has.clone(), has.clone(), has);
        self.at_save = None;
        lost
    }
}

struct Life {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Life {
    fn begin(dir: &Path, life: usize) -> Self {
        let mut victim = Command::new(env::current_exe().unwrap());
        victim.args(["--exact", "victim", "--nocapture"]);
        victim.env(DIR, dir).env(LIFE, life.to_string()).stdout(Stdio::piped());
        let mut child = victim.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Life { child, lines }
    }

    /// Reads the state that the victim reports after its start.
    fn has(&mut self) -> Vec<u64> {
        let mut has = vec![0; KEYS];
        for line in self.lines.by_ref() {
            match line.unwrap().split(' ').collect::<Vec<_>>()[..] {
                ["has", key, count] => has[key.parse::<usize>().unwrap()] = count.parse().unwrap(),
                ["ready"] => return has,
                _ => {}
            }
        }
        panic!("the victim did not start: {}", self.child.wait().unwrap());
    }

    /// Waits for a number of saves, then of lines; kills the victim and reads the rest of its
    /// output.
    fn end(mut self, ledger: &mut Ledger, saves: u32, lines: usize) {
        let until = ledger.saves + saves;
        while ledger.saves < until {
            ledger.read_line(&self.lines.next().unwrap().unwrap());
        }
        for line in self.lines.by_ref().take(lines) {
            ledger.read_line(&line.unwrap());
        }
        self.child.kill().unwrap();
        for line in self.lines {
            ledger.read_line(&line.unwrap());
        }
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "it ended by itself: {status}");
    }
}

fn empty_dir() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crash");
    if place.exists() {
        fs::remove_dir_all(&place).unwrap();
    }
    place
}

#[test]
fn a_killed_store_restarts_with_all_saved_charges() {
    if env::var_os(DIR).is_some() {
        return;
    }
    let kills = env::var("TOLLGATE_CRASHES").map_or(100, |kills| kills.parse::<usize>().unwrap());
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let dir = empty_dir();
    let zeros = || vec![0; KEYS];
    let mut ledger = Ledger { begun: zeros(), done: zeros(), saved: zeros(), ..Ledger::default() };
    let (mut killed, mut amid, mut lost) = (0, 0, Vec::new());
    for life in 0..=kills {
        let mut victim = Life::begin(&dir, life);
        lost.push(ledger.restart(victim.has()));
        let saves = u32::try_from(random.usize(..4)).unwrap();
        victim.end(&mut ledger, saves, random.usize(..3_000));
        if life < kills {
            killed += 1;
            amid += u32::from(ledger.at_save.is_some());
        }
        for file in fs::read_dir(&dir).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            assert!(["lock", "snapshot", "snapshot.unfinished"].contains(&&*name), "{name}");
        }
    }
    assert_eq!(killed, kills);
    let charged: u64 = ledger.done.iter().sum();
    println!(
        "{killed} kills, {amid} amid a save; {} saves, {charged} charges kept, at most {} lost at \
         once, which no finished save had seen",
        ledger.saves,
        lost.iter().max().unwrap()
    );
    assert!(amid > 0 && ledger.saves > 0, "the kills missed the saves");
}
