//! kyber by hand, without a disk.

use super::{BUCKETS, Histogram, Kyber};
use crate::command::{Command, CommandKind};
use crate::queue::waiting::{Submitter, Waiting};
use proptest::prelude::*;
use raidlab_units::{Nanos, Sectors};

fn waiting(tag: u64, kind: CommandKind, arrived: Nanos) -> Waiting {
    Waiting {
        command: Command {
            tag,
            kind,
            start: Sectors(tag * 8),
            count: Sectors(8),
        },
        arrived,
        further: Vec::new(),
        from: Submitter::default(),
        owner: None,
    }
}

/// So many commands one after the other that wait and are with the disk for so long, the last
/// of which ends at `end`.
fn feed(kyber: &mut Kyber, kind: CommandKind, count: u64, [host, disk]: [Nanos; 2], end: Nanos) {
    for tag in 0..count {
        let at = end.saturating_sub(disk);
        kyber.sent(at, &waiting(tag, kind, at.saturating_sub(host)));
        kyber.ended(end, tag);
    }
}

#[test]
fn a_percentile_is_the_bucket_that_it_falls_into() {
    let histogram = |buckets: [u32; BUCKETS]| Histogram(buckets);
    let cases = [
        ([10, 0, 0, 0, 0, 0, 0, 0], 99, 0),
        ([90, 10, 0, 0, 0, 0, 0, 0], 90, 0),
        ([89, 11, 0, 0, 0, 0, 0, 0], 90, 1),
        ([0, 0, 0, 0, 0, 0, 0, 5], 90, 7),
        ([98, 0, 0, 0, 0, 1, 1, 0], 99, 5),
    ];
    for (buckets, percent, expected) in cases {
        assert_eq!(
            histogram(buckets).percentile(percent),
            expected,
            "{buckets:?}"
        );
    }
    let mut times = Histogram::default();
    let target = Nanos::from_millis(2);
    for micros in [0, 500, 501, 2000, 2001, 3500, 3501, 900_000] {
        times.add(Nanos::from_micros(micros), target);
    }
    assert_eq!(times.0, [2, 1, 0, 1, 1, 0, 1, 2]);
}

/// By hand: writes keep the disk for twice their target, so it is congested, and fast reads
/// give up three quarters of their tokens; reads that then wait for 3 ms get half as many
/// again.
#[test]
fn fast_domains_give_up_tokens_for_slow_ones() {
    use CommandKind::{Read, Write};
    let ms = Nanos::from_millis;
    let mut kyber = Kyber::new();
    feed(&mut kyber, Write, 600, [ms(0), ms(20)], ms(100));
    feed(
        &mut kyber,
        Read,
        600,
        [ms(0), Nanos::from_micros(400)],
        ms(150),
    );
    kyber.look(ms(199));
    assert_eq!(kyber.tokens(), [(0, 256), (0, 128), (0, 64)], "not yet");
    kyber.look(ms(200));
    assert_eq!(kyber.tokens(), [(0, 64), (0, 128), (0, 64)]);
    feed(
        &mut kyber,
        Read,
        600,
        [ms(3), Nanos::from_micros(100)],
        ms(210),
    );
    kyber.look(ms(310));
    let after = [(0, 64 * 7 / 4), (0, 128), (0, 64)];
    assert_eq!(kyber.tokens(), after);
}

#[test]
fn a_disk_that_is_slow_in_hundreds_of_commands_keeps_its_tokens() {
    let ms = Nanos::from_millis;
    let mut kyber = Kyber::new();
    for second in 1..20 {
        feed(
            &mut kyber,
            CommandKind::Write,
            400,
            [ms(0), ms(50)],
            ms(1000 * second),
        );
        kyber.look(ms(1000 * second + 500));
    }
    assert_eq!(kyber.tokens(), [(0, 256), (0, 128), (0, 64)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// No domain gets a command while it has no token, whatever happens to their number.
    #[test]
    fn tokens_are_never_exceeded(
        script in prop::collection::vec((0_u8..8, 0_u64..40_000), 1..3000),
    ) {
        let mut kyber = Kyber::new();
        let mut line: Vec<Waiting> = Vec::new();
        let mut with_disk: Vec<u64> = Vec::new();
        let mut now = Nanos::ZERO;
        for (tag, &(what, micros)) in (0..).zip(&script) {
            now += Nanos::from_micros(micros);
            kyber.look(now);
            match what {
                0..=3 => line.push(waiting(tag, CommandKind::Read, now)),
                4 => line.push(waiting(tag, CommandKind::Write, now)),
                5 => line.push(waiting(tag, CommandKind::Discard, now)),
                _ => for tag in with_disk.drain(..with_disk.len() / 2) {
                    kyber.ended(now, tag);
                },
            }
            let before = kyber.tokens();
            while let Some(next) = kyber.next(&line) {
                let next = line.remove(next);
                kyber.sent(now, &next);
                with_disk.push(next.command.tag);
            }
            for ((in_use, tokens), (used, _)) in kyber.tokens().into_iter().zip(before) {
                prop_assert!(tokens >= 1 && in_use <= tokens.max(used), "{in_use} of {tokens}");
            }
        }
    }
}
