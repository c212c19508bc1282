//! Guests that do what no kernel does: an error or an end, never a panic.

use crate::peer::{Clock, Driver, Guest, PROBE_STEPS, Sockets};
use crate::ring::{Ring, SHARED_FROM, Transfer};
use crate::stage::{Run, options, run, run_raw, simple};
use proptest::prelude::*;
use raidlab_uml_calendar::{CalendarError, ClockError, DeviceError, Outcome, Protocol};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

/// Says no more, and listens until the calendar has gone.
fn hang_up(mut socket: &UnixStream) {
    // A calendar that has gone already is as good.
    let _ = socket.shutdown(Shutdown::Write);
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest);
}

/// The run ended in a way that a guest can bring about.
fn is_over<T>(run: &Run<T>) -> bool {
    match &run.ending {
        Ok(outcome) => matches!(outcome, Outcome::GuestEnded | Outcome::IdleForEver { .. }),
        Err(error) => matches!(
            error,
            CalendarError::Clock(_)
                | CalendarError::Device { .. }
                | CalendarError::StorageFull { .. }
        ),
    }
}

fn device_error<T>(run: Run<T>) -> DeviceError {
    match run.ending {
        Err(CalendarError::Device { disk: 0, source }) => source,
        other => panic!("{other:?}"),
    }
}

/// A driver of disk 0 that has got so far, and then says `bytes`.
fn driver_says(sockets: &Sockets, steps: usize, bytes: &[u8]) {
    let clock = Clock::start(&sockets.clock);
    let driver = Driver::begin_probe(&sockets.disks[0], steps);
    let mut socket = &driver.socket;
    let _ = socket.write_all(bytes);
    hang_up(socket);
    hang_up(&clock.socket);
}

fn request(code: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [code, 9, payload.len() as u32] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(payload);
    bytes
}

/// Any message of the protocol, in form.
fn well_formed() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![Just(0_u64), Just(0x1_7000_6644), Just(0x4228), any::<u64>()];
    let state = (0_u32..2, prop_oneof![0_u32..3, Just(256), any::<u32>()]);
    let numbers = proptest::collection::vec(any::<u64>(), 9);
    prop_oneof![
        prop_oneof![Just(1_u32), Just(3), Just(15), Just(21)].prop_map(|code| request(code, &[])),
        (prop_oneof![Just(2_u32), Just(16)], number)
            .prop_map(|(code, number)| request(code, &number.to_le_bytes())),
        (
            prop_oneof![Just(8_u32), Just(10), Just(18), Just(35)],
            state
        )
            .prop_map(|(code, (index, num))| {
                let payload = [index.to_le_bytes(), num.to_le_bytes()].concat();
                request(code, &payload)
            }),
        (prop_oneof![Just((5_u32, 72_usize)), Just((9, 40))], numbers).prop_map(
            |((code, length), numbers)| {
                let payload: Vec<u8> = numbers.iter().flat_map(|one| one.to_le_bytes()).collect();
                request(code, &payload[..length])
            }
        ),
        (0_u32..100, 0_u32..100).prop_map(|(offset, size)| {
            let mut payload = offset.to_le_bytes().to_vec();
            payload.extend(size.to_le_bytes());
            payload.resize(12 + size as usize, 1);
            request(24 + offset % 2, &payload)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_driver_may_say_anything_at_any_step(
        steps in 0..=PROBE_STEPS,
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let run = run_raw(vec![simple()], options(Protocol::Messages), |sockets| {
            driver_says(sockets, steps, &bytes);
        });
        prop_assert!(is_over(&run), "{:?}", run.ending);
    }

    #[test]
    fn a_driver_may_say_what_it_knows_in_any_order(
        steps in 0..=PROBE_STEPS,
        messages in proptest::collection::vec(well_formed(), 1..12),
    ) {
        let run = run_raw(vec![simple()], options(Protocol::SharedMemory), |sockets| {
            driver_says(sockets, steps, &messages.concat());
        });
        prop_assert!(is_over(&run), "{:?}", run.ending);
    }

    #[test]
    fn a_clock_may_say_anything_at_any_time(
        started: bool,
        shared: bool,
        messages in proptest::collection::vec((0_u32..11, 0_u32..4, any::<u64>()), 1..12),
        tail in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let protocol = if shared { Protocol::SharedMemory } else { Protocol::Messages };
        let run = run_raw(vec![simple()], options(protocol), |sockets| {
            let mut bytes = Vec::new();
            if started {
                bytes.extend([1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
            }
            for (operation, sequence, time) in messages {
                bytes.extend(operation.to_le_bytes());
                bytes.extend(sequence.to_le_bytes());
                // Mostly times that can come.
                let time = if sequence > 0 { time >> 34 } else { time };
                bytes.extend(time.to_le_bytes());
            }
            bytes.extend(tail);
            let mut socket = UnixStream::connect(&sockets.clock).unwrap();
            let _ = socket.write_all(&bytes);
            hang_up(&socket);
        });
        prop_assert!(is_over(&run), "{:?}", run.ending);
    }

    #[test]
    fn a_ring_may_hold_anything(
        pokes in proptest::collection::vec((0_u64..0x2000, any::<[u8; 4]>()), 1..40),
        header in any::<[u8; 16]>(),
        heads in proptest::collection::vec(0_u16..260, 0..4),
    ) {
        let run = run(vec![simple()], options(Protocol::Messages), |guest| {
            // Work under way, whose descriptors and buffers are then scribbled over.
            guest.submit(0, &Transfer::write(0, vec![1; 8192])).unwrap();
            guest.submit(0, &Transfer::read(900, 65536)).unwrap();
            let ring = &mut guest.drivers[0].ring;
            for (offset, bytes) in &pokes {
                // Not the index of what is available: that is the last test's.
                let outside_index = (offset + 3 < 0x1000) || *offset > 0x1003;
                if outside_index {
                    ring.poke(SHARED_FROM + offset, bytes);
                }
            }
            ring.poke(Ring::slot_at(0), &header);
            for &head in &heads {
                ring.offer(head);
            }
            if guest.kick(0).is_ok() {
                let _ = guest.sleep_until(1_000_000_000);
            }
        });
        prop_assert!(is_over(&run), "{:?}", run.ending);
    }
}

#[test]
fn a_chain_that_bites_its_tail_is_an_error() {
    let run = run(vec![simple()], options(Protocol::Messages), |guest| {
        let at = Ring::slot_at(0);
        let ring = &mut guest.drivers[0].ring;
        ring.put_descriptor(SHARED_FROM, 0, (at, 16, 1, 1));
        ring.put_descriptor(SHARED_FROM, 1, (at, 16, 1, 0));
        ring.offer(0);
        guest.kick(0)
    });
    assert_eq!(run.guest, Err(crate::peer::Gone));
    let error = device_error(run);
    assert_eq!(error.to_string(), "descriptor chain 0 does not end");
}

#[test]
fn a_chain_that_is_not_in_the_table_is_an_error() {
    let run = run(vec![simple()], options(Protocol::Messages), |guest| {
        guest.drivers[0].ring.offer(256);
        guest.kick(0)
    });
    let error = device_error(run);
    assert_eq!(error.to_string(), "descriptor chain 256 does not end");
}

#[test]
fn more_chains_than_the_ring_has_are_an_error() {
    let run = run(vec![simple()], options(Protocol::SharedMemory), |guest| {
        guest.drivers[0].ring.pretend(257);
        guest.kick(0)
    });
    assert!(matches!(device_error(run), DeviceError::Queue(_)));
}

#[test]
fn a_kick_for_a_disk_that_does_not_exist_is_an_error() {
    let run = run(vec![simple()], options(Protocol::SharedMemory), |guest| {
        guest.clock.share_disks();
        assert!(guest.clock.leave_kick(1, 1));
        guest.wait()
    });
    assert!(
        matches!(
            run.ending,
            Err(CalendarError::Clock(ClockError::NoDevice { device: 1 }))
        ),
        "{:?}",
        run.ending
    );
}

#[test]
fn a_status_that_has_no_place_is_an_error() {
    let run = run(vec![simple()], options(Protocol::Messages), |guest| {
        let ring = &mut guest.drivers[0].ring;
        let slot = ring.put(&Transfer::read(0, 4096));
        // The third of the slot's descriptors, which the device writes.
        ring.put_descriptor(SHARED_FROM, slot * 3 + 2, (0x4000_0000_0000, 1, 2, 0));
        guest.kick(0)?;
        guest.wait()
    });
    let error = device_error(run);
    assert!(error.to_string().contains("status outside"), "{error}");
}

#[test]
fn a_driver_without_in_band_kicks_is_refused() {
    let run = run_raw(vec![simple()], options(Protocol::Messages), |sockets| {
        driver_says(sockets, 3, &request(16, &0x228_u64.to_le_bytes()));
    });
    let error = device_error(run);
    assert!(
        matches!(
            error,
            DeviceError::Features {
                features: 0x228,
                ..
            }
        ),
        "{error}"
    );
}

/// A ring that is made anew, with the same slots in use, is given back nothing that was
/// asked for in the old one.
#[test]
fn what_an_old_ring_asked_for_is_given_back_to_none() {
    let run = run(
        vec![simple()],
        options(Protocol::Messages),
        |guest: &mut Guest| {
            guest.submit(0, &Transfer::read(8, 512)).unwrap();
            guest.drivers[0].tell(18, &[0; 8], None);
            let again = guest.drivers[0].ring.again();
            guest.drivers[0].ring = again;
            for step in 7..PROBE_STEPS {
                guest.drivers[0].probe_step(step, None);
            }
            let later = guest.clock.now + 1_000_000;
            guest.sleep_until(later).unwrap();
            let begun = guest.clock.now;
            let slot = guest.submit(0, &Transfer::read(800, 512)).unwrap();
            assert_eq!(guest.wait().unwrap(), [(0, slot)]);
            (guest.clock.now - begun, guest.drivers[0].ring.take_used())
        },
    );
    // The disk does the old one first, at 8 ms, and then this one.
    let (took, more) = run.guest;
    assert!(took > 8_000_000, "{took}");
    assert_eq!(more, [0_u16; 0]);
}

#[test]
fn a_driver_that_is_unbound_and_bound_again_works() {
    let run = run(
        vec![simple()],
        options(Protocol::Messages),
        |guest: &mut Guest| {
            let write = Transfer::write(8, vec![5; 512]);
            assert_eq!(guest.perform(0, &write).unwrap().0, 0);
            guest.drivers[0].tell(18, &[0; 8], None);
            let again = guest.drivers[0].ring.again();
            guest.drivers[0].ring = again;
            for step in 7..PROBE_STEPS {
                guest.drivers[0].probe_step(step, None);
            }
            guest.perform(0, &Transfer::read(8, 512)).unwrap()
        },
    );
    assert_eq!(run.guest, (0, vec![5; 512]));
}
