//! What a sample says of a drive, beside the drive.

use super::super::victims::Victims;
use super::*;

/// Logical pages of the whole drive; a sixteenth of them is kept of it.
const COUNT: u64 = 1 << 20;

fn pages(sample: u64, state: State) -> Pages {
    let numbers = Parameters {
        over_provisioning: 1.15,
        victims: Some(Victims::Greedy),
        state,
        ..Parameters::default()
    };
    Pages::sampled(COUNT * PAGE_BYTES, sample, &numbers, Stream::new(3))
}

/// Mean copies for each page written, over the second half of these writes.
fn copies(pages: &mut Pages, writes: impl Iterator<Item = (u64, u64)> + Clone) -> f64 {
    let half = writes.clone().count() / 2;
    let (mut paid, mut written) = (0, 0);
    for (turn, (first, end)) in writes.enumerate() {
        pages.write(first, end, end - first > 3);
        if turn >= half {
            paid += pages.copies() * (end - first);
            written += (end - first) << PART;
        }
    }
    paid as f64 / written as f64
}

#[test]
fn a_sample_costs_what_the_drive_costs() {
    let uniform = (0..4 * COUNT).map(|turn| {
        let page = Stream::new(turn).below(COUNT);
        (page, page + 1)
    });
    // Nine of ten writes hit a tenth of the pages.
    let skewed = (0..4 * COUNT).map(|turn| {
        let mut random = Stream::new(turn);
        let below = if random.percent(90) { COUNT / 10 } else { COUNT };
        let page = random.below(below);
        (page, page + 1)
    });
    for (name, writes) in [
        ("uniform", &mut uniform.clone() as &mut dyn Iterator<Item = (u64, u64)>),
        ("skewed", &mut skewed.clone()),
    ] {
        let writes: Vec<_> = writes.collect();
        let whole = copies(&mut pages(COUNT, State::Filled), writes.iter().copied());
        let sample = copies(&mut pages(COUNT / 16, State::Filled), writes.iter().copied());
        let ratio = (1.0 + sample) / (1.0 + whole);
        assert!((ratio - 1.0).abs() < 0.05, "{name}: {sample} copies instead of {whole}");
    }
    let stream = (0..8 * COUNT / 32).map(|turn| {
        let first = turn * 32 % COUNT;
        (first, first + 32)
    });
    let found = copies(&mut pages(COUNT / 16, State::Filled), stream);
    assert!(found < 0.01, "{found}");
}

/// Without spare pages a drive has the few blocks that collecting needs, and costs what they
/// leave, from its first write; theory is of large blocks, and off by two for such a share.
#[test]
fn a_steady_drive_without_spare_pages_costs_what_its_blocks_make_of_it() {
    let numbers = Parameters {
        over_provisioning: 1.0,
        victims: Some(Victims::Greedy),
        state: State::Steady,
        ..Parameters::default()
    };
    let mut drive = Pages::sampled(COUNT * PAGE_BYTES, COUNT / 16, &numbers, Stream::new(3));
    let begun = drive.copies() as f64 / f64::from(1 << PART);
    for turn in 0..40_000 {
        let page = Stream::new(turn).below(COUNT / drive.every) * drive.every;
        drive.write(page, page + 1, false);
    }
    let counts = drive.translation.counts();
    let found = counts.copied as f64 / counts.written as f64;
    assert!((0.4..2.5).contains(&(begun / found)), "{begun} copies, then {found}");
}

#[test]
fn pages_lie_where_they_were_written() {
    let mut drive = pages(COUNT / 16, State::Filled);
    let every = drive.every;
    let before = drive.location(every * 5).expect("it is mapped");
    assert!(before.together);
    drive.write(every * 5, every * 5 + 1, false);
    let after = drive.location(every * 5).expect("it is mapped");
    assert!(!after.together && after.hash != before.hash);
    assert_eq!(drive.mapped(), drive.size().next_multiple_of(every * PAGE_BYTES));
    drive.trim(0, COUNT);
    assert!(drive.location(every * 5).is_none() && drive.mapped() == 0);
}

/// The fault simulation models a drive that is smaller than the disk that it times.
#[test]
fn a_page_beyond_the_end_counts_as_the_last() {
    let drive = pages(COUNT, State::Filled);
    let hash = |page| drive.location(page).map(|location| location.hash);
    assert!(hash(COUNT - 1).is_some());
    assert_eq!(hash(COUNT), hash(COUNT - 1));
}
