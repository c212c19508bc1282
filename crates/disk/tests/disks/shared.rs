//! What holds for ports: on an arm they are one disk; on a cable one command is
//! under way at a time, and the ports take turns.

use proptest::prelude::*;
use raidlab_disk::medium::constant;
use raidlab_disk::shared::{Port, Region, Sharing, ports};
use raidlab_disk::{
    BusRules, Command, CommandKind, Completion, Disk, DiskParameters, MediumParameters, Preset,
};
use raidlab_random::Stream;
use raidlab_units::{BytesPerSecond, Nanos, Sectors};
use std::collections::VecDeque;

fn parameters(name: &str, text: &str) -> DiskParameters {
    let preset = Preset::parse(name, text).expect("the shipped preset is valid");
    preset.parameters("rated").expect("a shipped set").clone()
}

/// The two disks of the cable of 2008.
fn disks() -> Vec<Disk> {
    let a = parameters("a", include_str!("../../../../data/disks/st3160215a.toml"));
    let b = parameters("b", include_str!("../../../../data/disks/st340015a.toml"));
    let made = [(a, 1), (b, 2)]
        .map(|(numbers, index)| Disk::new(numbers, Nanos(index * 1_234_567), Stream::new(index)));
    made.into()
}

/// Three ports: two parts of the first disk, and the second disk.
const REGIONS: [Region; 3] = [
    Region {
        disk: 0,
        start: Sectors(200_000_000),
    },
    Region {
        disk: 1,
        start: Sectors(0),
    },
    Region {
        disk: 0,
        start: Sectors(100_000_000),
    },
];

/// A command to a port at a time.
#[derive(Debug, Clone, Copy)]
struct Order {
    at: Nanos,
    port: usize,
    command: Command,
}

fn orders() -> impl Strategy<Value = Vec<Order>> {
    use CommandKind::{Flush, Read, Write, WriteThrough};
    let kind = prop::sample::select(vec![Read, Read, Read, Write, Write, WriteThrough, Flush]);
    let pause = prop_oneof![Just(0_u64), 0_u64..100_000, 0_u64..30_000_000];
    let start = prop_oneof![0_u64..2_000, 0_u64..60_000_000];
    let order = (pause, 0_usize..3, kind, start, 1_u64..512);
    prop::collection::vec(order, 1..40).prop_map(|orders| {
        let mut at = Nanos::ZERO;
        let orders = orders.into_iter().enumerate();
        let orders = orders.map(|(tag, (pause, port, kind, start, count))| {
            at += Nanos(pause);
            let command = Command {
                tag: tag as u64,
                kind,
                start: Sectors(start),
                count: Sectors(count),
            };
            Order { at, port, command }
        });
        orders.collect()
    })
}

/// When each order was completed.
fn run(ports: &[Port], orders: &[Order]) -> Vec<Nanos> {
    let mut done: Vec<Option<Nanos>> = vec![None; orders.len()];
    let mut waiting = orders.iter().peekable();
    let mut now = Nanos::ZERO;
    let mut completions = Vec::new();
    while done.iter().any(Option::is_none) {
        let events = ports.iter().enumerate();
        let next = events.filter_map(|(port, one)| one.next_event().map(|at| (at, port)));
        let next = next.min();
        match waiting.peek() {
            Some(order) if next.is_none_or(|(event, _)| order.at < event) => {
                now = order.at;
                ports[order.port].submit(now, order.command);
                waiting.next();
            }
            _ => {
                let (at, port) = next.expect("commands in flight need an event");
                assert!(at >= now, "an event at {at} in the past of {now}");
                now = at;
                ports[port].advance(now, &mut completions);
                for Completion { tag } in completions.drain(..) {
                    let tag = usize::try_from(tag).expect("a tag of the script");
                    assert_eq!(orders[tag].port, port, "answered at another port");
                    assert_eq!(done[tag].replace(now), None, "{tag} completed twice");
                }
            }
        }
    }
    done.into_iter().flatten().collect()
}

/// The command as its disk gets it.
fn on_disk(order: &Order) -> (usize, Command) {
    let Region { disk, start } = REGIONS[order.port];
    let mut command = order.command;
    if command.kind != CommandKind::Flush {
        command.start += start;
    }
    (disk, command)
}

/// The same without a cable's state: a list of who waits, and disks that are asked
/// one after the other.
fn one_after_the_other(mut disks: Vec<Disk>, orders: &[Order]) -> Vec<Nanos> {
    let mut done = vec![Nanos::ZERO; orders.len()];
    let mut queues = [VecDeque::new(), VecDeque::new(), VecDeque::new()];
    let mut arriving = orders.iter().peekable();
    let mut free = Nanos::ZERO;
    let mut last = 2;
    let mut left = orders.len();
    while left > 0 {
        while let Some(order) = arriving.next_if(|order| order.at < free) {
            queues[order.port].push_back(order);
        }
        let turn = [1, 2, 3].map(|turn| (last + turn) % 3);
        let waiting = turn.into_iter().find(|&port| !queues[port].is_empty());
        let order = match waiting.and_then(|port| queues[port].pop_front()) {
            Some(order) => order,
            None => arriving.next().expect("not all are done"),
        };
        let begin = free.max(order.at);
        last = order.port;
        let (disk, command) = on_disk(order);
        let mut completions = Vec::new();
        disks[disk].advance(begin, &mut completions);
        assert_eq!(completions, [], "its command before was the only one");
        disks[disk].submit(begin, command);
        while completions.is_empty() {
            free = disks[disk].next_event().expect("a command is under way");
            disks[disk].advance(free, &mut completions);
        }
        let tag = usize::try_from(completions[0].tag).expect("a tag of the script");
        done[tag] = free;
        left -= 1;
    }
    done
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_cable_carries_one_command_at_a_time_in_turns(orders in orders()) {
        let ports = ports(disks(), &REGIONS, Sharing::Cable);
        let expected = one_after_the_other(disks(), &orders);
        prop_assert_eq!(run(&ports, &orders), expected);
    }

    #[test]
    fn ports_to_one_arm_are_one_disk(orders in orders()) {
        // All to the first disk, through two ports that lead there.
        let mut orders = orders;
        for order in &mut orders {
            order.port %= 2;
        }
        let regions = [REGIONS[0], REGIONS[2]];
        let many = ports(disks(), &regions, Sharing::Arm);
        let one = ports(disks(), &[Region { disk: 0, start: Sectors(0) }], Sharing::Arm);
        let moved: Vec<Order> = orders
            .iter()
            .map(|order| {
                let mut order = *order;
                if order.command.kind != CommandKind::Flush {
                    order.command.start += regions[order.port].start;
                }
                order.port = 0;
                order
            })
            .collect();
        prop_assert_eq!(run(&many, &orders), run(&one, &moved));
    }
}

/// Two readers with a command always waiting: each gets every other turn, however
/// near the one's next sector is.
#[test]
fn readers_on_a_cable_alternate() {
    let regions = [REGIONS[0], REGIONS[1]];
    let ports = ports(disks(), &regions, Sharing::Cable);
    let read = |port: usize, count: u64| Order {
        at: Nanos::ZERO,
        port,
        command: Command {
            tag: 2 * count + port as u64,
            kind: CommandKind::Read,
            start: Sectors(count * 256),
            count: Sectors(256),
        },
    };
    let mut orders: Vec<Order> = (0..20).map(|count| read(0, count)).collect();
    orders.extend((0..20).map(|count| read(1, count)));
    orders.sort_by_key(|order| order.command.tag);
    let done = run(&ports, &orders);
    assert!(done.is_sorted(), "in turns: {done:?}");
    assert!(ports.iter().all(|port| port.sharing() == Sharing::Cable));
}

/// A bus of 512 MB/s, on which a sector takes a microsecond, and two disks that take one
/// millisecond for each command and no time for its data.
fn on_a_bus(half_duplex: bool, command: u64) -> Vec<Port> {
    let access = Nanos(1_000_000);
    let disk = |index| {
        let medium = MediumParameters::Constant(constant::Parameters { access });
        let numbers = DiskParameters::uniform(Sectors(1 << 30), BytesPerSecond(9e11), medium);
        Disk::new(numbers, Nanos::ZERO, Stream::new(index))
    };
    let rules = BusRules {
        rate: BytesPerSecond(512e6),
        half_duplex,
        command: Nanos(command),
    };
    let regions = [0, 1].map(|disk| Region {
        disk,
        start: Sectors(0),
    });
    ports(vec![disk(0), disk(1)], &regions, Sharing::Bus(rules))
}

/// When commands of (microsecond, port, kind, sectors) are complete, in whole microseconds.
fn on_bus(ports: &[Port], commands: &[(u64, usize, CommandKind, u64)]) -> Vec<u64> {
    let order = |(tag, &(at, port, kind, count)): (usize, &(u64, usize, CommandKind, u64))| Order {
        at: Nanos(at * 1000),
        port,
        command: Command {
            tag: tag as u64,
            kind,
            start: Sectors(1_000_000 * (tag as u64 + 1)),
            count: Sectors(count),
        },
    };
    let orders: Vec<Order> = commands.iter().enumerate().map(order).collect();
    run(ports, &orders)
        .into_iter()
        .map(|at| at.0 / 1000)
        .collect()
}

#[test]
fn a_bus_is_shared_by_all_that_crosses_it() {
    use CommandKind::{Flush, Read, Write};
    let alone = on_bus(
        &on_a_bus(true, 0),
        &[
            (0, 0, Read, 100),
            (5000, 0, Write, 100),
            (9000, 1, Flush, 1),
        ],
    );
    assert_eq!(
        alone,
        [1100, 6100, 9000],
        "to the disk first, or from it last"
    );
    // Both disks have their data at the same time, and each gets half of the bus.
    let two = on_bus(&on_a_bus(true, 0), &[(0, 0, Read, 100), (0, 1, Read, 100)]);
    assert_eq!(two, [1200, 1200]);
    // The shorter is across when both had 50 microseconds of it, the longer 50 later.
    let unlike = on_bus(&on_a_bus(true, 0), &[(0, 0, Read, 50), (0, 1, Read, 100)]);
    assert_eq!(unlike, [1100, 1150]);
    // A write that begins to cross when a read does.
    let both = [(0, 0, Read, 100), (1000, 1, Write, 100)];
    assert_eq!(on_bus(&on_a_bus(true, 0), &both), [1200, 2200]);
    assert_eq!(
        on_bus(&on_a_bus(false, 0), &both),
        [1100, 2100],
        "each way by itself"
    );
    assert_eq!(on_bus(&on_a_bus(true, 7000), &[(0, 0, Read, 100)]), [1107]);
    // What has no data takes the time of a command all the same, and of the bus.
    assert_eq!(on_bus(&on_a_bus(true, 7000), &[(0, 0, Flush, 1)]), [7]);
    let two = [(0, 0, Flush, 1), (0, 1, Flush, 1)];
    assert_eq!(on_bus(&on_a_bus(true, 7000), &two), [14, 14]);
}

#[test]
fn a_drive_with_many_commands_has_no_more_of_a_bus() {
    use CommandKind::Write;
    // Each of both has half of the bus until the data of the one's first command and of the
    // other's only one are across; the others follow alone.
    let deep = [
        (0, 0, Write, 100),
        (0, 0, Write, 100),
        (0, 0, Write, 100),
        (0, 1, Write, 100),
    ];
    assert_eq!(on_bus(&on_a_bus(true, 0), &deep), [1200, 2200, 3200, 1200]);
    // The second begins to cross when the first is across, and the drive takes both in turn; it has
    // half a microsecond for the data of each.
    let one = [(0, 0, Write, 900), (0, 0, Write, 1000)];
    assert_eq!(on_bus(&on_a_bus(true, 0), &one), [1900, 2901]);
}

/// Two disks of which each could do more: on PCI of 100 MB/s a mirror's writes cross twice, so
/// it writes half of that.
#[test]
fn a_mirror_on_pci_writes_half_of_what_the_bus_carries() {
    let text = include_str!("../../../../data/disks/wd15ears.toml");
    let numbers = parameters("wd15ears", text);
    let disk = |index| {
        Disk::new(
            numbers.clone(),
            Nanos(index * 1_234_567),
            Stream::new(index),
        )
    };
    let rules = BusRules {
        rate: BytesPerSecond(100e6),
        half_duplex: true,
        command: Nanos::ZERO,
    };
    let regions = [0, 1].map(|disk| Region {
        disk,
        start: Sectors(0),
    });
    let ports = ports(vec![disk(0), disk(1)], &regions, Sharing::Bus(rules));
    let orders: Vec<Order> = (0..800_u64)
        .map(|tag| Order {
            // A little more than it can do: 55.8 MB/s.
            at: Nanos(tag / 2 * 4_700_000),
            port: usize::from(tag % 2 == 1),
            command: Command {
                tag,
                kind: CommandKind::Write,
                start: Sectors(tag / 2 * 512),
                count: Sectors(512),
            },
        })
        .collect();
    let last = run(&ports, &orders)
        .into_iter()
        .max()
        .expect("all are done");
    let rate = 400.0 * 262_144.0 / last.0 as f64 * 1e3;
    assert!((47.0..50.5).contains(&rate), "{rate} MB/s");
}
