//! The command `raidlab watch`: it shows a served array, second by second.
//!
//! On a terminal the table is drawn over itself; elsewhere each look is printed below the one
//! before, so that it can be kept.

use super::control::{Which, percent, status};
use crate::failure::Failure;
use crate::{interrupt, output};
use clap::Args;
use console::Term;
use raidlab_serve::control::{DeviceReport, StatusReport};
use raidlab_serve::member::MemberCounters;
use raidlab_units::{Bytes, Nanos};
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Arguments of `raidlab watch`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,

    /// How many seconds pass between two lookups of the state.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,

    /// End after the state was shown this many times. Default: go on until Ctrl-C.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

/// Shows a served array second by second, until it is stopped.
///
/// # Errors
/// When the array is not served.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    let stop = interrupt::listen()?;
    let mut client = arguments.which.connect()?;
    let terminal = Term::stdout();
    let mut before: Option<StatusReport> = None;
    let mut looks = 0;
    while arguments.count.is_none_or(|most| looks < most) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let Ok(now) = status(&mut client) else {
            if looks == 0 {
                status(&mut arguments.which.connect()?)?;
            }
            output::say("the array is served no more");
            break;
        };
        let text = picture(&now, before.as_ref());
        if terminal.is_term() && looks > 0 {
            // A terminal that cannot be cleared shows all looks, which harms nothing.
            let _ = terminal.clear_screen();
        }
        output::print(&text)?;
        before = Some(now);
        looks += 1;
        if arguments.count != Some(looks) {
            pause(arguments.interval, stop);
        }
    }
    Ok(())
}

fn pause(seconds: u64, stop: &std::sync::atomic::AtomicBool) {
    for _ in 0..seconds * 10 {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Prints one look, with rates since the one before.
fn picture(now: &StatusReport, before: Option<&StatusReport>) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} {} {} {}",
        now.name, now.level, now.state, now.health
    );
    let seconds = before.map(|before| Nanos(now.at_ns.saturating_sub(before.at_ns)).as_secs_f64());
    if let Some(sync) = &now.sync {
        let _ = write!(text, "{} {}", sync.kind, percent(sync.position, sync.total));
        let earlier = before.and_then(|before| before.sync.as_ref());
        let earlier = earlier.filter(|earlier| earlier.kind == sync.kind);
        if let (Some(earlier), Some(seconds)) = (earlier, seconds) {
            let sectors = sync.position.saturating_sub(earlier.position);
            let _ = write!(text, ", {}/s", rate(sectors * 512, seconds));
        }
        text.push('\n');
    }
    if let Some(broken) = &now.broken {
        let _ = writeln!(text, "broken: {broken}");
    }
    let rows = now.devices.iter().map(|device| {
        let earlier = before.and_then(|before| {
            let same = |one: &&DeviceReport| one.number == device.number;
            before.devices.iter().find(same)
        });
        row(device, earlier.zip(seconds))
    });
    let head = [
        "slot",
        "state",
        "reads/s",
        "read/s",
        "writes/s",
        "written/s",
        "in flight",
        "errors",
        "device",
    ];
    text.push_str(&output::table(
        &head,
        &[0, 2, 3, 4, 5, 6, 7],
        rows.collect(),
    ));
    text
}

fn row(device: &DeviceReport, earlier: Option<(&DeviceReport, f64)>) -> Vec<String> {
    let own = &device.counters;
    let in_a_second = |of: fn(&MemberCounters) -> u64, words: fn(u64, f64) -> String| {
        let since = |(earlier, seconds): (&DeviceReport, f64)| {
            words(of(own).saturating_sub(of(&earlier.counters)), seconds)
        };
        earlier.map_or_else(|| "-".to_owned(), since)
    };
    vec![
        device
            .slot
            .map_or_else(|| "-".to_owned(), |slot| slot.to_string()),
        device.state.clone(),
        in_a_second(|one| one.reads, per_second),
        in_a_second(|one| one.read_bytes, rate),
        in_a_second(|one| one.writes, per_second),
        in_a_second(|one| one.written_bytes, rate),
        own.in_flight.to_string(),
        own.errors.to_string(),
        device.path.clone(),
    ]
}

fn per_second(count: u64, seconds: f64) -> String {
    format!("{:.0}", count as f64 / seconds.max(1e-9))
}

fn rate(bytes: u64, seconds: f64) -> String {
    Bytes((bytes as f64 / seconds.max(1e-9)) as u64).to_string()
}
