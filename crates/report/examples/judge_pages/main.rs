//! Judges reports in a real browser: `checks/pages` runs it.
//!
//! `cargo run -p raidlab-report --example judge_pages -- [--self-test] [--screenshots FOLDER] FILE...`
//!
//! Each page is opened at 400 and at 1600 pixels, light and dark, with all folded parts opened, and
//! `judge.js` inspects the rendered page: no text over another, cut off or unreadable, nothing
//! wider than the window, every series drawn, named and distinguishable, no request, no error of a
//! script. `--self-test` puts faults into made-up pages first, each of which must be found.

mod browser;
mod faults;
#[path = "../../tests/sample/mod.rs"]
mod made_up;

use browser::Browser;
use faults::{FAULTS, with_fault};
use raidlab_report::{RunData, html};
use std::error::Error;
use std::path::{Path, PathBuf};

const WIDTHS: [u32; 2] = [400, 1600];
const SCHEMES: [&str; 2] = ["light", "dark"];

/// The number of complaints of one kind about one page that are printed.
const PRINTED: usize = 6;

/// A complaint: its kind, and words.
type Complaint = (String, String);

/// The complaints about the open page.
fn judged(browser: &mut Browser) -> Result<Vec<Complaint>, Box<dyn Error>> {
    let found = browser.evaluate(include_str!("judge.js"))?;
    let mut all: Vec<Complaint> = serde_json::from_value(found)?;
    all.extend(browser.complaints());
    Ok(all)
}

/// The made-up runs of the crate's tests.
fn samples() -> [(&'static str, RunData); 2] {
    let mut bench = made_up::bench::data();
    // One experiment is enough, as the time lines of all are alike.
    bench
        .series
        .retain(|series| series.scope.repetition == Some(0) && series.scope.host == "beta");
    [("sample-model", made_up::data()), ("sample-bench", bench)]
}

/// Checks that every seeded fault is found; returns the number of those that were not.
fn self_test(browser: &mut Browser, folder: &Path) -> Result<usize, Box<dyn Error>> {
    let [(_, mut data), _] = samples();
    // The fewest charts with both lines and bars.
    data.measurements
        .retain(|m| m.class == "random-read" || m.class == "random-write");
    data.measurements.retain(|m| m.queue_depth < 8);
    let sound = html(&data)?;
    let path = folder.join("fault.html");
    let mut missed = 0;
    for (name, kind, script) in FAULTS {
        std::fs::write(&path, with_fault(&sound, script))?;
        browser.open(&path, 1600)?;
        let found = judged(browser)?;
        let hit = found.iter().any(|(own, _)| own == kind);
        println!("{} {name} ({kind})", if hit { "found " } else { "MISSED" });
        missed += usize::from(!hit);
    }
    Ok(missed)
}

/// Prints the first few complaints of each kind.
fn print(found: &[Complaint]) {
    for (place, (kind, words)) in found.iter().enumerate() {
        let before = found[..place].iter().filter(|(own, _)| own == kind);
        if before.count() < PRINTED {
            println!("  {kind}: {words}");
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut pages: Vec<PathBuf> = Vec::new();
    let (mut testing, mut pictures) = (false, None);
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--self-test") => testing = true,
            Some("--screenshots") => pictures = arguments.next().map(PathBuf::from),
            _ => pages.push(argument.into()),
        }
    }
    let folder = tempfile::tempdir()?;
    let mut browser = Browser::start()?;
    let mut wrong = 0;
    if testing {
        wrong += self_test(&mut browser, folder.path())?;
        for (name, data) in samples() {
            let path = folder.path().join(format!("{name}.html"));
            std::fs::write(&path, html(&data)?)?;
            pages.push(path);
        }
    }
    for page in &pages {
        let name = page.file_stem().unwrap_or_default().to_string_lossy();
        for width in WIDTHS {
            browser.prefer(SCHEMES[0])?;
            browser.open(page, width)?;
            for scheme in SCHEMES {
                // The page switches at once, without being opened again.
                browser.prefer(scheme)?;
                let found = judged(&mut browser)?;
                println!(
                    "{name}, {width} pixels, {scheme}: {} complaints",
                    found.len()
                );
                print(&found);
                wrong += found.len();
                if let Some(folder) = &pictures {
                    let picture = folder.join(format!("{name}-{width}-{scheme}.png.base64"));
                    std::fs::write(picture, browser.screenshot()?)?;
                }
            }
        }
    }
    if wrong > 0 {
        return Err(format!("{wrong} complaints and missed faults").into());
    }
    println!("{} pages: everything holds", pages.len());
    Ok(())
}
