//! What few arrays have and administrators seldom do, each by itself: spares that are failed and
//! removed by hand, full bad-block logs, a bitmap in a file, growth, write-mostly members, and
//! force that nobody needs.

use super::{SECOND, after, arrays, at_once, noted_while_away};
use raidlab_faults::script::{Action, Restart, Step, Verb};
use raidlab_faults::{Filter, Options, Seldom, run_seed, run_with};
use raidlab_geometry::{Layout, Level};
use raidlab_metadata::Version;

fn write(start: u64, count: u64) -> Step {
    at_once(Action::Write {
        start,
        count,
        force_unit_access: true,
    })
}

fn read(start: u64, count: u64) -> Step {
    at_once(Action::Read { start, count })
}

fn order(verb: Verb) -> Step {
    at_once(Action::Administer(verb))
}

fn speed(kib_per_second: u64) -> Step {
    order(Verb::Speed {
        minimum: kib_per_second,
        maximum: kib_per_second,
    })
}

const fn restart(seed: u64) -> Restart {
    Restart {
        seed,
        missing: None,
        stale: false,
        again: None,
    }
}

/// Runs a script, which keeps every promise and in which each of these is done.
fn keeps(options: &Options, script: &[Step], deeds: &[&str]) {
    let outcome = run_with(options.clone(), Some(script.to_vec()), 1, false);
    assert_eq!(outcome.violation, None, "{options:?}");
    let done: Vec<&str> = outcome.statistics.reach.deeds().map(|it| it.0).collect();
    for deed in deeds {
        assert!(done.contains(deed), "{deed} is not among {done:?}");
    }
}

/// Spares, and the disk that is filled to replace a member, go by hand, and so does the member.
#[test]
fn disks_that_serve_no_slot_are_failed_and_removed() {
    for options in arrays() {
        for (newest, cut) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut script = vec![
                write(0, 200),
                speed(20),
                order(Verb::Spare),
                order(Verb::Replace { member: 1 }),
                write(3, 40),
                order(Verb::RemoveSpare { newest }),
                order(Verb::FailSpare { newest }),
                write(9, 40),
                after(SECOND / 50, Action::Drain),
                order(Verb::RemoveSpare { newest }),
                order(Verb::Replace {
                    member: 2 % options.members,
                }),
                after(SECOND / 20, Action::Fail { member: 0 }),
                write(60, 40),
                order(Verb::FailSpare { newest }),
            ];
            if cut {
                script.push(after(200_000, Action::PowerCut(restart(3))));
            }
            script.extend([read(0, 640), speed(200_000)]);
            let deeds = ["spare failed by hand", "spare removed by hand"];
            keeps(&options, &script, &deeds);
        }
    }
}

/// The log of a member has no room for another entry, and what is written in the middle of a
/// range that it names would need one. Then the power is cut, or the member is replaced: what
/// was written has to be copied, though the log may still name it.
#[test]
fn a_full_log_names_more_than_is_bad() {
    for options in arrays() {
        let cut = Action::PowerCut(restart(7));
        let replace = Action::Administer(Verb::Replace { member: 1 });
        let repair = Action::Check { repair: true };
        for (left, deed) in [(0, cut), (1, cut), (0, replace), (0, repair)] {
            let mut script = noted_while_away(&[at_once(Action::FillLog { member: 1, left })]);
            script.push(read(0, 640));
            script.extend((0..40).map(|place| write(place * 16 + 5, 2)));
            script.extend([
                at_once(deed),
                after(3 * SECOND, Action::Drain),
                read(0, 640),
                at_once(repair),
                after(SECOND, Action::Drain),
                read(0, 640),
            ]);
            keeps(&options, &script, &["bad-block log filled elsewhere"]);
        }
    }
}

/// The file with the bitmap errs and dies while a member is away.
#[test]
fn a_bitmap_in_a_file_may_be_lost() {
    for options in arrays() {
        let options = Options {
            seldom: Seldom {
                bitmap_in_file: true,
                ..Seldom::default()
            },
            ..options
        };
        let script = [
            write(0, 200),
            after(12 * SECOND, Action::Drain),
            at_once(Action::Fail { member: 0 }),
            write(300, 50),
            after(SECOND, Action::Drain),
            at_once(Action::Mend {
                fresh: false,
                healed: true,
            }),
            write(400, 10),
            after(100_000, Action::PowerCut(restart(1 << 48))),
            order(Verb::BitmapFileErrs { commands: 1 }),
            write(17, 100),
            after(100_000, Action::PowerCut(restart(0))),
            write(9, 100),
            after(100_000, Action::PowerCut(restart(1 << 48))),
            write(100, 10),
            order(Verb::LoseBitmapFile),
            write(200, 10),
            after(20 * SECOND, Action::Drain),
        ];
        let deeds = [
            "re-add by bitmap",
            "bitmap file that errs",
            "lost bitmap file",
        ];
        keeps(&options, &script, &deeds);
    }
}

/// A bitmap of two pages, in a file: a bit for each sector.
#[test]
fn a_bitmap_has_two_pages() {
    let options = Options {
        bitmap_chunk: Some(1),
        seldom: Seldom {
            bitmap_in_file: true,
            two_pages: true,
            ..Seldom::default()
        },
        sync_block: 1024,
        ..Options::plain(Level::Raid1, Layout::None, 2, (128, 31_232))
    };
    let script = [
        write(0, 2),
        write(31_000, 200),
        at_once(Action::PowerCut(restart(1 << 48))),
        at_once(Action::Fail { member: 0 }),
        write(30_715, 10),
        at_once(Action::Mend {
            fresh: false,
            healed: true,
        }),
        after(30 * SECOND, Action::Drain),
    ];
    keeps(&options, &script, &["re-add by bitmap", "power cut"]);
}

/// An array grows, is written to where it is new, and the growth is cut off or not.
#[test]
fn an_array_grows() {
    for options in arrays() {
        for assume_clean in [true, false] {
            let options = Options {
                assume_clean,
                seldom: Seldom {
                    room: Some(64),
                    ..Seldom::default()
                },
                ..options.clone()
            };
            let mut script = Vec::new();
            // Of these seeds the array grows at the second, as nothing asks for it at the first.
            for seed in [1 << 40, 0, 0, 1 << 40] {
                script.extend([
                    write(600, 40),
                    after(SECOND, Action::Drain),
                    at_once(Action::Stop(restart(seed))),
                    speed(100),
                    write(640, 8),
                    write(650, 3),
                    after(100_000, Action::PowerCut(restart(seed))),
                    write(655, 9),
                    read(640, 24),
                    at_once(Action::Lose { member: 1 }),
                    write(641, 30),
                    read(640, 40),
                    at_once(Action::Mend {
                        fresh: true,
                        healed: true,
                    }),
                    speed(200_000),
                    after(20 * SECOND, Action::Drain),
                ]);
            }
            keeps(&options, &script, &["growth"]);
        }
    }
}

/// Members that are read only where nobody else can serve, and starts with needless force.
#[test]
fn write_mostly_and_needless_force() {
    for options in arrays() {
        let options = Options {
            seldom: Seldom {
                write_mostly: 0b0101,
                forces: true,
                ..Seldom::default()
            },
            ..options
        };
        let script = [
            write(0, 200),
            at_once(Action::PowerCut(restart(0))),
            read(0, 640),
            at_once(Action::Lose { member: 1 }),
            read(0, 640),
            write(7, 200),
            at_once(Action::Stop(restart(0))),
            read(0, 640),
        ];
        keeps(&options, &script, &["needless force"]);
    }
}

/// A new disk is larger than the first ones, and the array starts with it alone, as the other side
/// of a split. The others can come back all the same: the ring of the write log stays where they
/// have room for it.
#[test]
fn who_is_away_has_room_for_the_log_when_it_is_back() {
    let outcome = run_seed(&Filter::default(), 300_000_000_799, false);
    assert_eq!(outcome.violation, None);
    let options = outcome.options;
    assert_eq!((options.version, options.log), (Version::V1_0, true));
    assert_eq!(options.seldom.room, Some(72), "the seed means what it did");
}

/// Disk 0 has left an array that has grown since. The oracle took it for the image of an empty slot,
/// and looked for a row that this disk has no room for.
#[test]
fn an_empty_slot_stands_in_for_no_disk_that_is_too_small() {
    let outcome = run_seed(&Filter::default(), 310_000_076_661, false);
    assert_eq!(outcome.violation, None);
    let reach = outcome.statistics.reach;
    assert!(reach.deeds().any(|(deed, ..)| deed == "growth"));
}

/// A disk that had a flush for 70 ms failed just before it answered. Another one had been filled
/// meanwhile, and nobody asked it: the flush failed within the budget.
#[test]
fn a_flush_asks_who_was_filled_while_it_waited() {
    let outcome = run_seed(&Filter::default(), 330_000_699_218, false);
    assert_eq!(outcome.violation, None);
}

/// What growth meets: full bad-block logs that name sectors of the new part, spares and disks taken
/// out before, which are as large as members were then, and a bitmap's file that was away.
#[test]
fn growth_meets_what_is_older() {
    // Reads of the new part failed within the budget.
    let named_bad = [310_000_021_875, 310_000_159_544];
    // Parity did not fit the data of the new part: bad blocks again, a write log in the data of a
    // spare that was older than the growth, and the file of before, which was believed by the oracle.
    let unfit = [310_000_045_182, 310_000_069_574, 310_000_116_261];
    // A disk with enough room was refused, as the write log had moved, or larger members have more.
    let refused = [310_000_059_788, 310_000_013_037, 310_000_311_409];
    for seed in named_bad.into_iter().chain(unfit).chain(refused) {
        let outcome = run_seed(&Filter::default(), seed, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        let reach = outcome.statistics.reach;
        let grows = reach.deeds().any(|(deed, ..)| deed == "growth");
        assert!(grows, "seed {seed} means what it did");
    }
}
