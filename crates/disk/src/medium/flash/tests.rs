//! Tables by hand: four dies of 8 KiB pages, 100 us to read one, 200 us to program.

use super::*;
use raidlab_units::Sectors;

fn flash(buffer: usize) -> Flash {
    let parameters = Parameters {
        dies: 4,
        page: Bytes(8192),
        read: Nanos(100),
        program: Nanos(200),
    };
    Flash::new(parameters, buffer)
}

fn command(kind: CommandKind, start: u64, count: u64) -> Command {
    Command {
        tag: 0,
        kind,
        start: Sectors(start),
        count: Sectors(count),
    }
}

#[test]
fn reads_of_different_dies_go_side_by_side() {
    let mut flash = flash(8);
    let read = |start, count| command(CommandKind::Read, start, count);
    assert_eq!(flash.serve(0, &read(0, 8)), 100);
    assert_eq!(flash.serve(0, &read(16, 8)), 100, "the next page's die");
    assert_eq!(flash.serve(0, &read(8, 8)), 200, "the first page's again");
    assert_eq!(
        flash.serve(1000, &read(0, 64)),
        1100,
        "four pages, four dies"
    );
    assert_eq!(flash.serve(2000, &read(0, 80)), 2200, "five pages");
    assert_eq!(flash.serve(3000, &read(15, 2)), 3100, "over a page's end");
}

#[test]
fn writes_end_in_the_buffer_until_it_is_full() {
    let mut flash = flash(2);
    let write = |page: u64| command(CommandKind::Write, page * 16, 16);
    assert_eq!(flash.serve(0, &write(0)), 0);
    assert_eq!(flash.serve(0, &write(1)), 0);
    assert_eq!(
        flash.serve(0, &write(2)),
        200,
        "the first is programmed then"
    );
    let flush = command(CommandKind::Flush, 0, 0);
    assert_eq!(flash.serve(210, &flush), 400, "the third began at 200");
    assert_eq!(flash.serve(1000, &flush), 1000);
    assert_eq!(
        flash.serve(1000, &command(CommandKind::WriteThrough, 0, 16)),
        1200
    );
    assert_eq!(
        flash.serve(1000, &command(CommandKind::Read, 0, 8)),
        1300,
        "behind it"
    );
}
