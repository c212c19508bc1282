//! Hostile clients in great number, and good ones among them.
//!
//! Two servers: an array that anybody may use, in plain text or over TLS, and
//! memory for clients with a certificate. Threads open hostile connections of all
//! kinds over the loopback address, a bounded number; meanwhile good clients, some
//! that stay and some that come and go, write and read back. All of them must be
//! served, none waiting long; and in the end each server must have the threads and
//! the descriptors that it had at the beginning, and no more memory than before the
//! last part of the flood.
//!
//! `checks/hostile` is the long form: HOSTILE_CONNECTIONS says how many.

mod attacks;

use crate::array::Place as Members;
use crate::client::{Client, Place, Wishes, connect};
use crate::security::{Served, certificates, tls};
use attacks::{ATTACKS, Attacker};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Hostile connections where nothing is said.
const SHORT: u64 = 1000;
/// Threads that make them.
const ATTACKERS: u64 = 6;
/// No good client may wait longer for anything.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that a good client writes and reads back at a time.
const GOOD_BYTES: u32 = 16 << 10;
/// Parts of the flood. In the first ones the pools of buffers, which are bounded,
/// get full; what the last one adds is a leak, but for this much of chance.
const PARTS: u64 = 4;
const SLACK_KIB: u64 = 10 << 10;

/// What a process has.
#[derive(Debug, Clone, Copy)]
struct Holdings {
    threads: usize,
    descriptors: usize,
    memory_kib: u64,
}

impl Holdings {
    fn of(process: u32) -> Self {
        let count = |folder: &str| {
            let folder = std::fs::read_dir(format!("/proc/{process}/{folder}"));
            folder.expect("it runs").count()
        };
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        let status = status.expect("it runs");
        let memory = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let memory = memory.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        Self {
            threads: count("task"),
            descriptors: count("fd"),
            memory_kib: memory.expect("a number"),
        }
    }
}

/// A server and how good clients come to it.
struct Target {
    served: Served,
    certified: bool,
}

impl Target {
    fn new(folder: tempfile::TempDir, certified: bool, what: &[&str]) -> Self {
        let certificates = certificates().display().to_string();
        let mut words: Vec<String> = what.iter().map(|&word| word.to_owned()).collect();
        words.extend(["--tcp", "127.0.0.1:0", "--client-timeout", "1"].map(str::to_owned));
        words.extend([
            "--tls-certificate".to_owned(),
            format!("{certificates}/server.pem"),
        ]);
        words.extend([
            "--tls-key".to_owned(),
            format!("{certificates}/server-key.pem"),
        ]);
        if certified {
            let authority = format!("{certificates}/client-authority.pem");
            words.extend(["--tls-client-authority".to_owned(), authority]);
        }
        Self {
            served: Served::start(folder, &words).expect("a server"),
            certified,
        }
    }

    fn address(&self) -> SocketAddr {
        match &self.served.place {
            Place::Tcp(_, port) => ([127, 0, 0, 1], *port).into(),
            Place::Unix(_) => unreachable!("it listens on TCP"),
        }
    }

    fn connect(&self) -> Client {
        let tls = self.certified.then(|| tls(Some("client")));
        connect(&self.served.place, tls.as_ref(), &Wishes::default())
            .expect("good clients are let in")
    }

    fn holdings(&self) -> Holdings {
        Holdings::of(self.served.process())
    }
}

/// What good clients have seen.
#[derive(Default)]
struct Seen {
    served: AtomicU64,
    longest_us: AtomicU64,
}

impl Seen {
    fn timed<T>(&self, action: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = action();
        let took = began.elapsed();
        assert!(took < PATIENCE, "a good client waited for {took:?}");
        self.served.fetch_add(1, Ordering::Relaxed);
        let us = took.as_micros() as u64;
        self.longest_us.fetch_max(us, Ordering::Relaxed);
        result
    }
}

/// Writes and reads back, in a range of its own from 8 MiB on.
fn write_and_read_back(client: &mut Client, range: u64, round: u64) {
    let offset = (8 << 20) + range * u64::from(GOOD_BYTES);
    let bytes = vec![(round % 251) as u8 ^ range as u8; GOOD_BYTES as usize];
    client.write(offset, &bytes, false).expect("a good write");
    let found = client.read(offset, GOOD_BYTES).expect("a good read");
    assert!(found == bytes, "range {range}, round {round}");
}

/// So many hostile connections, with good clients all the while.
fn flood(targets: &[Target], connections: u64, seed: u64, seen: &Seen) {
    let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let attack = |worker: u64| {
        let mut attackers: Vec<Attacker> = targets
            .iter()
            .map(|target| Attacker {
                server: target.address(),
                chance: (seed << 8 | worker) * 2 + 1,
                handshakes: VecDeque::new(),
                clients: VecDeque::new(),
            })
            .collect();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= connections {
                return;
            }
            let count = attackers.len();
            let attacker = &mut attackers[number as usize % count];
            let (_, attack) = ATTACKS[number as usize / count % ATTACKS.len()];
            attack(attacker);
        }
    };
    let stays = |target: &Target, range: u64| {
        let mut client = target.connect();
        let mut round = 0;
        while !over.load(Ordering::Relaxed) {
            seen.timed(|| write_and_read_back(&mut client, range, round));
            round += 1;
            thread::sleep(Duration::from_millis(5));
        }
        client.disconnect().expect("a good-bye");
    };
    let comes_and_goes = |target: &Target, range: u64| {
        let mut round = 0;
        while !over.load(Ordering::Relaxed) {
            seen.timed(|| {
                let mut client = target.connect();
                write_and_read_back(&mut client, range, round);
                client.disconnect().expect("a good-bye");
            });
            round += 1;
            thread::sleep(Duration::from_millis(20));
        }
    };
    thread::scope(|scope| {
        for target in targets {
            scope.spawn(|| stays(target, 0));
            scope.spawn(|| comes_and_goes(target, 1));
        }
        let attack = &attack;
        let attackers: Vec<_> = (1..=ATTACKERS)
            .map(|worker| scope.spawn(move || attack(worker)))
            .collect();
        let ended: Vec<_> = attackers.into_iter().map(|one| one.join()).collect();
        over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "an attacker failed");
    });
}

/// Waits until as few threads and descriptors are left as there were.
fn settled(target: &Target, before: Holdings) -> Holdings {
    let began = Instant::now();
    loop {
        let now = target.holdings();
        if now.threads <= before.threads && now.descriptors <= before.descriptors {
            return now;
        }
        assert!(
            began.elapsed() < 2 * PATIENCE,
            "before: {before:?}, now: {now:?}"
        );
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_flood_of_hostile_clients_leaves_nothing_and_keeps_nobody_out() {
    let connections = match std::env::var("HOSTILE_CONNECTIONS") {
        Ok(number) => number.parse().expect("HOSTILE_CONNECTIONS is a number"),
        Err(_) => SHORT,
    };
    let members = Members::new(3);
    members.must(&[
        "create",
        "--level",
        "5",
        "--raid-devices",
        "3",
        "m0",
        "m1",
        "m2",
    ]);
    let paths: Vec<String> = (0..3)
        .map(|number| members.path(&format!("m{number}")).display().to_string())
        .collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let folder = || tempfile::tempdir().expect("a folder");
    let targets = [
        Target::new(folder(), false, &paths),
        Target::new(folder(), true, &["--memory", "65536"]),
    ];
    let idle: Vec<Holdings> = targets.iter().map(Target::holdings).collect();
    let (seen, began) = (Seen::default(), Instant::now());
    let mut found = vec![idle.clone()];
    for part in 0..PARTS {
        flood(&targets, connections / PARTS, part + 1, &seen);
        let now = targets.iter().zip(&idle);
        found.push(now.map(|(target, idle)| settled(target, *idle)).collect());
    }
    println!(
        "{connections} hostile connections of {} kinds in {:.1} s; good clients were served {} \
         times, the longest wait was {} ms",
        ATTACKS.len(),
        began.elapsed().as_secs_f64(),
        seen.served.load(Ordering::Relaxed),
        seen.longest_us.load(Ordering::Relaxed) / 1000,
    );
    for (which, target) in targets.iter().enumerate() {
        let memory: Vec<u64> = found.iter().map(|all| all[which].memory_kib).collect();
        let last = &found[PARTS as usize][which];
        println!(
            "{}: {} threads, {} descriptors; KiB of memory at the beginning and after each of \
             {PARTS} parts: {memory:?}",
            match target.certified {
                true => "for clients with a certificate",
                false => "for anybody",
            },
            last.threads,
            last.descriptors,
        );
        let before = memory[PARTS as usize - 1];
        assert!(last.memory_kib <= before + SLACK_KIB, "{memory:?}");
    }
    assert!(seen.served.load(Ordering::Relaxed) > 0);
}
