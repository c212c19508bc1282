//! Any text is read as a disk preset, or refused with a line that it has; and
//! what is read can be built and serves a read.

use crate::text;
use raidlab_disk::medium::platters::PlatterParameters;
use raidlab_disk::{Command, CommandKind, Disk, Preset};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};

/// Reads the text that these bytes begin with.
pub fn run(bytes: &[u8]) {
    let text = text(bytes);
    let Ok(preset) = Preset::parse("preset", text) else {
        return;
    };
    for set in preset.set_names() {
        let parameters = preset.parameters(set).expect("a set of its own");
        // A window or cache as large as the reader allows only costs time.
        let is_large = |it: &PlatterParameters| it.segments > 64;
        if parameters.write_window > 64 || parameters.medium.platters().is_some_and(is_large) {
            continue;
        }
        let mut disk = Disk::new(parameters.clone(), Nanos::ZERO, Stream::new(1));
        disk.submit(
            Nanos::ZERO,
            Command {
                tag: 0,
                kind: CommandKind::Read,
                start: Sectors(parameters.capacity.0 / 2),
                count: Sectors(8),
            },
        );
        let mut done = Vec::new();
        for _ in 0..4 {
            if let Some(now) = disk.next_event() {
                disk.advance(now, &mut done);
            }
        }
        assert_eq!(done.len(), 1);
    }
}
