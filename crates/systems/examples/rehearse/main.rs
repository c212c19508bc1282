//! Builds an array for real, removes a member and puts it back in both ways, reads the array's
//! state all the while, takes it down, and records the machine's answers as a transcript: the
//! recordings among the tests' data were made by it.
//!
//! ```text
//! rehearse BUILD.toml TRANSCRIPT.jsonl FOLDER DEVICE...
//! ```
//!
//! `BUILD.toml` holds what a subject's `[build]` table holds: `[md]`, `[btrfs]`,
//! ... All data on the devices are lost.

mod play;

use play::Rehearsal;
use raidlab_shell::{Local, Observed};
use raidlab_systems::{ArraySpec, Built, Member};
use raidlab_units::Sectors;
use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [build, transcript, folder, devices @ ..] = words.as_slice() else {
        return Err("usage: rehearse BUILD.toml TRANSCRIPT.jsonl FOLDER DEVICE...".into());
    };
    let spec: ArraySpec = toml::from_str(&std::fs::read_to_string(build)?)?;
    let transcript = std::fs::File::create(transcript)?;
    let machine = Observed::recording(Local::new(), transcript);
    let array = Built {
        name: format!("{}7", play::PREFIX),
        members: devices
            .iter()
            .map(|device| member(device))
            .collect::<Result<_>>()?,
        folder: folder.clone(),
    };
    let mut rehearsal = Rehearsal {
        system: &*spec,
        machine: &machine,
        array: &array,
        pause: || sleep(Duration::from_millis(300)),
        seen: String::new(),
    };
    let outcome = rehearsal.play();
    print!("{}", rehearsal.seen);
    outcome
}

fn member(device: &str) -> Result<Member> {
    let name = device.trim_start_matches("/dev/");
    let sectors = std::fs::read_to_string(format!("/sys/class/block/{name}/size"))?;
    Ok(Member {
        device: device.to_owned(),
        size: Sectors(sectors.trim().parse()?).to_bytes(),
        backing: None,
        away: false,
    })
}
