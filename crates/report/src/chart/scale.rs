//! The scale of values: linear from zero where they can be read on it, else logarithmic.

use super::look::{axis, with};
use crate::format::thousands;
use serde_json::{Value, json};

/// The ratio between the highest and the lowest value from which the scale is logarithmic: values
/// below a fiftieth of the height cannot be read.
const WIDE: f64 = 50.0;

/// The share of the highest value below which a value is in the corner of the chart; where more
/// than half are there, one outlier squeezes the rest.
const CORNER: f64 = 0.1;

/// The ratio between the last and the first step from which steps are spaced by their ratios.
const STEPS_APART: f64 = 8.0;

/// The scale of a chart's values, with its beginning and end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    pub log: bool,
    pub low: f64,
    pub high: f64,
}

impl Scale {
    /// A linear scale from 0 to 100 percent.
    pub(super) const PERCENT: Self = Self {
        log: false,
        low: 0.0,
        high: 100.0,
    };

    /// The scale for values of which some may be zero; `None` without values.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = values[values.len() / 2];
        let squeezed = values.len() > 2 && middle < high * CORNER;
        if low > 0.0 && (high >= low * WIDE || squeezed) {
            return Some(Self {
                log: true,
                low,
                high,
            });
        }
        Some(Self {
            log: false,
            low: low.min(0.0),
            high,
        })
    }

    /// The scale for latencies, which is always by ratios.
    pub(super) fn of_ratios(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let low = values
            .clone()
            .filter(|value| *value > 0.0)
            .reduce(f64::min)?;
        Some(Self {
            log: true,
            low,
            high: values.fold(low, f64::max),
        })
    }

    /// The position of a value that did not set the scale: at an edge, if it is beyond.
    pub(super) const fn within(self, value: f64) -> f64 {
        value.clamp(self.low, self.high)
    }

    /// The note `log scale`, or an empty text.
    pub(super) fn words(self) -> &'static str {
        if self.log { ", log scale" } else { "" }
    }

    /// The axis's range with room for marks at its ends; for a logarithmic scale in powers of ten,
    /// as in `plotly.js`.
    pub(super) fn range(self, room: f64) -> [f64; 2] {
        if self.log {
            let span = (self.high / self.low).log10().max(0.3);
            [
                self.low.log10() - room * span,
                self.high.log10() + room * span,
            ]
        } else {
            let span = if self.high > self.low {
                self.high - self.low
            } else {
                1.0
            };
            let below = if self.low < 0.0 { room * span } else { 0.0 };
            [self.low - below, self.high + room * span]
        }
    }

    /// The position of a value as a share of the axis's length, from 0 to 1.
    pub(super) fn part(self, value: f64) -> f64 {
        let [from, to] = self.range(0.06);
        let place = if self.log { value.log10() } else { value };
        (place - from) / (to - from)
    }

    /// A vertical axis of values on this scale, so many pixels long.
    pub(super) fn axis(self, title: &str, pixels: f64) -> Value {
        const LINE: f64 = 26.0;
        self.axis_with_room(title, pixels, LINE)
    }

    /// The horizontal axis of this scale below the plot.
    pub(super) fn lying_axis(self, title: &str, pixels: f64) -> Value {
        const WORD: f64 = 46.0;
        self.axis_with_room(title, pixels, WORD)
    }

    /// The axis; `room` is the distance of ticks in pixels.
    fn axis_with_room(self, title: &str, pixels: f64, room: f64) -> Value {
        let mut settings = json!({"range": self.range(0.06)});
        if self.log {
            let ticks = self.log_ticks(pixels, room);
            let texts: Vec<String> = ticks.iter().map(|tick| tick_text(*tick)).collect();
            settings["type"] = json!("log");
            settings["tickvals"] = json!(ticks);
            settings["ticktext"] = json!(texts);
        }
        with(axis(title), &settings)
    }

    /// Ticks at round numbers, as many as there is room for: two at least, where two have room, as
    /// nobody can read a logarithmic scale off a single one.
    fn log_ticks(self, pixels: f64, room: f64) -> Vec<f64> {
        let [from, to] = self.range(0.06);
        let choices: [&[f64]; 4] = [
            &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            &[1.0, 2.0, 3.0, 5.0, 7.0],
            &[1.0, 2.0, 5.0],
            &[1.0],
        ];
        let decades = || (from.floor() as i32)..=(to.ceil() as i32);
        let inside = |tick: &f64| (from..=to).contains(&tick.log10());
        let place = |tick: f64| (tick.log10() - from) / (to - from) * pixels;
        let mut crowded: Vec<f64> = Vec::new();
        for digits in choices {
            let all = decades().flat_map(|decade| {
                let digits = digits.iter();
                digits.map(move |digit| digit * 10_f64.powi(decade))
            });
            let ticks: Vec<f64> = all.filter(inside).collect();
            let gaps = ticks.windows(2).map(|pair| place(pair[1]) - place(pair[0]));
            if gaps.fold(f64::MAX, f64::min) >= room {
                let fewer = spaced(&crowded, room, place);
                return if ticks.len() < 2 && fewer.len() > 1 {
                    fewer
                } else {
                    ticks
                };
            }
            crowded = ticks;
        }
        let step = 1 + crowded.len() * room as usize / (pixels.max(1.0) as usize);
        crowded.into_iter().step_by(step).collect()
    }
}

/// Those of the ticks that have this room between each other, from the first one on.
fn spaced(ticks: &[f64], room: f64, place: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut kept: Vec<f64> = Vec::new();
    for &tick in ticks {
        let has_room = |last: &f64| place(tick) - place(*last) >= room;
        if kept.last().is_none_or(has_room) {
            kept.push(tick);
        }
    }
    kept
}

fn tick_text(tick: f64) -> String {
    if tick < 10.0 {
        // Powers of ten are not exact below one.
        format!("{}", (tick * 1e6).round() / 1e6)
    } else {
        thousands(tick)
    }
}

/// The axis along a ladder: a tick at each step that has room for its words in `pixels`, spaced by
/// ratios where `ratios` allows it and the steps call for it.
pub(super) fn steps_axis(title: &str, steps: &[(f64, String)], ratios: bool, pixels: f64) -> Value {
    let first = steps.first().map_or(1.0, |step| step.0);
    let last = steps.last().map_or(1.0, |step| step.0);
    let log = ratios && first > 0.0 && last >= first * STEPS_APART;
    let place = |value: f64| if log { value.log10() } else { value };
    let span = (place(last) - place(first)).max(f64::MIN_POSITIVE);
    let room = if last > first { 0.05 * span } else { 1.0 };
    let (from, to) = (place(first) - room, place(last) + room);
    let width = |words: &str| words.chars().count() as f64 * 7.5 + 8.0;
    let at = |value: f64| (place(value) - from) / (to - from) * pixels;
    let mut kept: Vec<&(f64, String)> = Vec::new();
    // From the right, since the last step is often the most important.
    for step in steps.iter().rev() {
        let free = kept
            .last()
            .is_none_or(|next| at(next.0) - at(step.0) >= (width(&next.1) + width(&step.1)) / 2.0);
        if free {
            kept.push(step);
        }
    }
    let values: Vec<f64> = kept.iter().map(|step| step.0).collect();
    let texts: Vec<&str> = kept.iter().map(|step| step.1.as_str()).collect();
    let settings = json!({
        "type": if log { "log" } else { "linear" }, "range": [from, to], "zeroline": false,
        "tickvals": values, "ticktext": texts, "ticks": "outside", "tickangle": 0,
    });
    let words = if log { " (log scale)" } else { "" };
    with(axis(&format!("{title}{words}")), &settings)
}

#[cfg(test)]
mod tests {
    use super::{Scale, steps_axis};

    fn is_log(values: &[f64]) -> bool {
        Scale::of(values.iter().copied()).unwrap().log
    }

    #[test]
    fn values_that_can_be_read_on_a_linear_scale_stay_on_it() {
        assert!(!is_log(&[100.0, 150.0, 400.0]));
        assert!(!is_log(&[10.0, 300.0, 400.0]));
        assert!(!is_log(&[0.0, 300.0]), "a logarithm has no zero");
    }

    #[test]
    fn a_wide_ratio_and_an_outlier_ask_for_a_logarithmic_one() {
        assert!(is_log(&[1.0, 60.0]));
        assert!(is_log(&[100.0, 110.0, 120.0, 1900.0]));
        assert!(!is_log(&[100.0, 1500.0, 1700.0, 1900.0]), "most are high");
        assert!(Scale::of(std::iter::empty()).is_none());
    }

    #[test]
    fn ticks_of_a_logarithmic_scale_have_room_and_are_inside() {
        for (low, high) in [(1.0, 1.2), (3.0, 40.0), (0.01, 9000.0), (1e-6, 1e12)] {
            let scale = Scale {
                log: true,
                low,
                high,
            };
            let ticks = scale.log_ticks(200.0, 26.0);
            assert!((1..=9).contains(&ticks.len()), "{low} {high} {ticks:?}");
            let [from, to] = scale.range(0.06);
            assert!(ticks.iter().all(|t| (from..=to).contains(&t.log10())));
        }
    }

    /// Between one and two powers of ten there may be a single power of ten, and no room for all of
    /// 1, 2 and 5.
    #[test]
    fn a_logarithmic_scale_has_two_ticks_where_two_have_room() {
        let ticks = |low: f64, high: f64, pixels: f64| {
            let log = true;
            Scale { log, low, high }.log_ticks(pixels, 46.0)
        };
        assert_eq!(ticks(17.0, 140.0, 150.0), [20.0, 50.0]);
        assert_eq!(ticks(4.0, 80.0, 215.0), [5.0, 20.0, 50.0]);
        // Powers of ten are enough where there are two.
        assert_eq!(ticks(8.0, 140.0, 150.0), [10.0, 100.0]);
        assert_eq!(ticks(40.0, 60.0, 10.0), [50.0]);
    }

    #[test]
    fn crowded_steps_lose_their_words_and_not_the_last_one() {
        let steps = [1.0, 2.0, 3.0, 4.0, 32.0].map(|x| (x, format!("{x} MiB")));
        let axis = steps_axis("block size", &steps, true, 260.0);
        assert_eq!(axis["type"], "log");
        let texts = axis["ticktext"].as_array().unwrap();
        assert!(texts.len() < 5 && texts[0] == "32 MiB", "{texts:?}");
        let near = [1.0, 2.0, 4.0].map(|x| (x, x.to_string()));
        assert_eq!(steps_axis("", &near, true, 260.0)["type"], "linear");
        assert_eq!(steps_axis("", &steps, false, 260.0)["type"], "linear");
    }
}
