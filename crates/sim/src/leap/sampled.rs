//! The pace of a sync, from samples of it.

use crate::result::scale;
use raidlab_units::Nanos;

/// The difference in hundredths up to which samples agree: a pace that still grows does so by four
/// hundredths and more from one sample to the next.
const AGREE_PERCENT: u64 = 2;

/// The time between two looks at places in a sample.
pub(super) const LOOK: Nanos = Nanos::from_millis(250);

/// The percentage of the disks' own pace at which nothing but the platters holds a sync back.
const OWN_PACE_PERCENT: u64 = 99;

/// A sample of a sync, and the leap behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampled {
    /// The end of the sample.
    at: Nanos,
    /// The places that the sync went in a time, in the sample.
    seen: (u64, Nanos),
    /// The places that it is expected to go in that time, in the leap.
    pub(super) expected: (u64, Nanos),
    /// The time that was leaped over, zero without a leap.
    pub(super) leapt: Nanos,
}

impl Sampled {
    /// A sample that has just ended: so many places in such a time. It expects more of the same.
    pub(super) const fn new(at: Nanos, seen: (u64, Nanos)) -> Self {
        Self {
            at,
            seen,
            expected: seen,
            leapt: Nanos::ZERO,
        }
    }

    /// The places that the sample's sync would go in another time.
    fn places_in(&self, time: Nanos) -> i128 {
        let (places, took) = self.seen;
        i128::from(scale(places, time.0, took.0))
    }

    /// Whether the paces of two samples are alike.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let [one, other] = [self, other].map(|one| one.places_in(Nanos::SECOND));
        (one - other).abs() * 100 <= one.max(other) * i128::from(AGREE_PERCENT)
    }

    /// Expects the pace to change on through a leap of `time` as it has changed since the sample
    /// before the last leap. Of that leap both ends are known by now: what it lacked, or had too
    /// much, is made up for. Where there was no leap yet, the two samples are neighbours, and
    /// differ by chance more than by what the pace changes.
    pub(super) fn expect(&mut self, before: Option<Self>, time: Nanos) {
        let Some(before) = before.filter(|before| before.leapt > Nanos::ZERO) else {
            return;
        };
        let (seen, took) = self.seen;
        let wide = |time: Nanos| i128::from(time.0.max(1));
        let change = i128::from(seen) - before.places_in(took);
        let passed = 2 * wide(self.at - before.at);
        let goes_on = change * wide(time).min(passed) / passed;
        let mean = (self.places_in(before.leapt) + before.places_in(before.leapt)) / 2;
        let (assumed, of) = before.expected;
        let lacked = mean - i128::from(scale(assumed, before.leapt.0, of.0));
        let made_up = lacked * wide(took) / wide(time);
        let most = i128::from(seen) * 2;
        let places = (i128::from(seen) + goes_on + made_up).clamp(most / 4, most);
        self.expected = (u64::try_from(places).unwrap_or(seen), took);
    }
}

/// Returns the mean of the second half of some places less that of the first half, and the time
/// between the two.
pub(super) fn between_halves(places: &[u64]) -> (u64, Nanos) {
    let half = places.len() / 2;
    let later = places.len() - half;
    let sum = |places: &[u64]| places.iter().map(|place| u128::from(*place)).sum::<u128>();
    let (first, second) = (sum(&places[..half]), sum(&places[later..]));
    let apart = second.saturating_sub(first) / half.max(1) as u128;
    (
        u64::try_from(apart).unwrap_or(u64::MAX),
        LOOK * later as u64,
    )
}

/// Whether a sync that was at these places goes as fast as platters do: its places are times.
pub(super) fn is_own_pace(places: &[u64]) -> bool {
    let (Some(first), Some(last)) = (places.first(), places.last()) else {
        return false;
    };
    let took = LOOK.0 * (places.len() as u64 - 1);
    took > 0 && last.saturating_sub(*first) * 100 >= took * OWN_PACE_PERCENT
}

#[cfg(test)]
mod tests {
    use super::{LOOK, Sampled, between_halves, is_own_pace};
    use raidlab_units::Nanos;

    #[test]
    fn a_pace_in_bursts_is_told_by_the_halves_of_its_sample() {
        // 10 a step on average, at once or not at all.
        let bursts = [0, 0, 20, 20, 40, 40, 60, 60];
        assert_eq!(between_halves(&bursts), (40, LOOK * 4));
        assert_eq!(between_halves(&bursts[..5]), (30, LOOK * 3));
        assert_eq!(between_halves(&[]), (0, Nanos::ZERO));
    }

    #[test]
    fn platters_own_pace_is_a_place_for_each_nanosecond() {
        let at = |percent: u64| (0..7).map(move |look| look * LOOK.0 * percent / 100);
        for (percent, is_own) in [(46, false), (98, false), (99, true), (101, true)] {
            let places: Vec<u64> = at(percent).collect();
            assert_eq!(is_own_pace(&places), is_own, "{percent} %");
        }
        // Nothing was seen, or a sync that began anew.
        assert!(!is_own_pace(&[]) && !is_own_pace(&[5]) && !is_own_pace(&[5, 0]));
    }

    /// A sample of a second that ended at `at` seconds.
    fn sampled(at: u64, pace: u64) -> Sampled {
        Sampled::new(Nanos::from_secs(at), (pace, Nanos::SECOND))
    }

    /// Of a pace that falls evenly, a leap as long as the time since the last sample has the mean.
    /// Where the pace began to fall in a leap, the next leap makes up for that.
    #[test]
    fn a_leap_expects_the_pace_to_change_on_and_makes_up_for_the_last_one() {
        let expected = |before: Option<(u64, u64)>, time| {
            let mut now = sampled(200, 960);
            let before = before.map(|(leapt, assumed)| Sampled {
                leapt: Nanos::from_secs(leapt),
                expected: (assumed, Nanos::SECOND),
                ..sampled(100, 1000)
            });
            now.expect(before, Nanos::from_secs(time));
            now.expected.0
        };
        assert_eq!(expected(None, 100), 960);
        assert_eq!(expected(Some((0, 1000)), 100), 960, "there was no leap");
        assert_eq!(expected(Some((100, 980)), 100), 940, "it was right");
        assert_eq!(
            expected(Some((100, 1000)), 100),
            920,
            "it went 2000 too far"
        );
        assert_eq!(expected(Some((100, 1000)), 200), 910);
        assert_eq!(
            expected(Some((100, 980)), 10_000),
            920,
            "no further than that"
        );
    }

    #[test]
    fn a_pace_that_still_grows_is_not_leaped_over() {
        for (one, other, agree) in [(995, 1004, true), (1001, 995, true), (961, 1001, false)] {
            assert_eq!(sampled(1, one).agrees(&sampled(2, other)), agree);
        }
    }
}
