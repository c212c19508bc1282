//! The common look of all charts: series, axes, layout.

use serde_json::{Value, json};
use std::fmt::Write;

/// Text colour of the page.
pub(crate) const INK: &str = "theme:ink";
/// Colour of secondary text.
pub(crate) const MUTED: &str = "theme:muted";
/// Colour of rules, and of lines in the background.
pub(crate) const GRID: &str = "theme:grid";
const CLEAR: &str = "rgba(0,0,0,0)";

/// The colours of series: Okabe and Ito, "Color Universal Design" (2008), without black, which is
/// invisible on a dark page. After their first six come three of ours for suites with many
/// subjects, and their yellow last, because it is hard to see on white.
const COLOURS: [(u8, u8, u8); 10] = [
    (0x00, 0x72, 0xb2),
    (0xe6, 0x9f, 0x00),
    (0x00, 0x9e, 0x73),
    (0xd5, 0x5e, 0x00),
    (0xcc, 0x79, 0xa7),
    (0x56, 0xb4, 0xe9),
    (0x8c, 0x8c, 0x8c),
    (0x8a, 0x5a, 0x3b),
    (0x7b, 0x5e, 0xc6),
    (0xf0, 0xe4, 0x42),
];

/// The number of colours. More lines cannot be told apart in one chart: each gets a panel of its
/// own, with the others in grey behind it.
pub(crate) const MOST_LINES: usize = COLOURS.len();

const DASHES: [&str; 4] = ["solid", "dash", "dot", "dashdot"];
const SYMBOLS: [&str; 8] = [
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "pentagon",
    "star",
    "cross",
];
/// Hatchings of bars, as `plotly.js` names them.
const PATTERNS: [&str; 8] = ["", "/", "\\", "x", "-", "|", "+", "."];

/// The look of a subject or another series: colour and marker, and from the eleventh on a dash and
/// a hatching too, so that no two of the first 80 are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look(pub usize);

impl Look {
    const fn rgb(self) -> (u8, u8, u8) {
        COLOURS[self.0 % COLOURS.len()]
    }

    const fn round(self) -> usize {
        self.0 / COLOURS.len()
    }

    /// The colour as CSS takes it, `#rrggbb`.
    pub(crate) fn colour(self) -> String {
        let (red, green, blue) = self.rgb();
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    /// The colour with an opacity from 0 to 1.
    pub(crate) fn tint(self, opacity: f64) -> String {
        let (red, green, blue) = self.rgb();
        format!("rgba({red},{green},{blue},{opacity:.2})")
    }

    pub(crate) const fn dash(self) -> &'static str {
        DASHES[self.round() % DASHES.len()]
    }

    /// The marker, so that colour is never the only difference.
    pub(crate) const fn symbol(self) -> &'static str {
        let all = COLOURS.len() * DASHES.len();
        SYMBOLS[(self.0 + self.0 / all) % SYMBOLS.len()]
    }

    pub(crate) const fn pattern(self) -> &'static str {
        PATTERNS[self.round() % PATTERNS.len()]
    }

    /// A line of `plotly.js`.
    pub(crate) fn line(self) -> Value {
        json!({"color": self.colour(), "width": 2, "dash": self.dash()})
    }

    /// A marker of `plotly.js`.
    pub(crate) fn marker(self) -> Value {
        json!({"symbol": self.symbol(), "color": self.colour(), "size": 8})
    }

    /// The open marker of a published or fitted figure.
    pub(crate) fn open_marker(self) -> Value {
        json!({
            "symbol": format!("{}-open", self.symbol()), "color": self.colour(), "size": 11,
            "line": {"width": 2},
        })
    }

    /// The filling of a bar.
    pub(crate) fn bar(self) -> Value {
        json!({
            "color": self.tint(0.85), "line": {"width": 0},
            "pattern": {"shape": self.pattern(), "fillmode": "overlay", "fgcolor": "theme:card", "size": 6, "solidity": 0.35},
        })
    }

    /// A square of the colour with the hatching, as SVG for headings and legends.
    pub(crate) fn chip(self) -> String {
        let strokes = match self.pattern() {
            "" => "",
            "/" => "M-1 5L5 -1M-1 13L13 -1M7 13L13 7",
            "\\" => "M-1 7L5 13M-1 -1L13 13M7 -1L13 5",
            "x" => "M-1 13L13 -1M-1 -1L13 13",
            "-" => "M0 3H12M0 9H12",
            "|" => "M3 0V12M9 0V12",
            "+" => "M0 6H12M6 0V12",
            _ => "M2 3H4M8 3H10M2 9H4M8 9H10",
        };
        let mut svg = format!(
            "<svg class=\"chip\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect width=\"12\" height=\"12\" rx=\"3\" fill=\"{}\"/>",
            self.colour()
        );
        if !strokes.is_empty() {
            let _ = write!(
                svg,
                "<path class=\"hatch\" d=\"{strokes}\" stroke-width=\"1.6\"/>"
            );
        }
        svg.push_str("</svg>");
        svg
    }

    /// A piece of the line with its marker, as SVG for legends.
    pub(crate) fn stroke(self) -> String {
        let dash = match self.dash() {
            "solid" => "",
            "dash" => "6 3",
            "dot" => "2 3",
            _ => "6 3 2 3",
        };
        let marker = match self.symbol() {
            "circle" => "M11 6a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
            "square" => "M11.5 2.5h7v7h-7z",
            "diamond" => "M15 1L20 6L15 11L10 6z",
            "triangle-up" => "M15 1.5L19.5 9.5H10.5z",
            "triangle-down" => "M15 10.5L19.5 2.5H10.5z",
            "pentagon" => "M15 1.5L19.3 4.6L17.6 9.6H12.4L10.7 4.6z",
            "star" => {
                "M15 1L16.3 4.3L19.8 4.5L17.1 6.7L18 10.1L15 8.2L12 10.1L12.9 6.7L10.2 4.5L13.7 4.3z"
            }
            _ => "M13.5 2H16.5V4.5H19V7.5H16.5V10H13.5V7.5H11V4.5H13.5z",
        };
        format!(
            "<svg class=\"stroke\" viewBox=\"0 0 30 12\" aria-hidden=\"true\"><path d=\"M0 6H30\" stroke=\"{0}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\" fill=\"none\"/><path d=\"{marker}\" fill=\"{0}\"/></svg>",
            self.colour()
        )
    }
}

/// The marker that stands for all published, or all fitted, figures in a legend.
pub(crate) fn open_circle() -> String {
    "<svg class=\"stroke\" viewBox=\"0 0 30 12\" aria-hidden=\"true\"><circle class=\"open\" cx=\"15\" cy=\"6\" r=\"4.5\"/></svg>".to_owned()
}

/// An axis; its title may be empty.
pub(crate) fn axis(title: &str) -> Value {
    json!({
        "title": {"text": title, "font": {"size": 13, "color": MUTED}},
        "automargin": true, "gridcolor": GRID, "linecolor": GRID, "tickcolor": GRID,
        "zerolinecolor": GRID, "tickfont": {"color": MUTED},
    })
}

/// Merges two objects of settings; those of the second take precedence.
pub(crate) fn with(mut settings: Value, more: &Value) -> Value {
    if let (Some(all), Some(more)) = (settings.as_object_mut(), more.as_object()) {
        all.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    settings
}

/// The layout and configuration of every chart; the page itself has titles and legends.
pub(crate) fn base() -> Value {
    json!({
        "layout": {
            "autosize": true, "showlegend": false, "hovermode": "closest",
            "paper_bgcolor": CLEAR, "plot_bgcolor": CLEAR,
            "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
            "margin": {"l": 44, "r": 16, "t": 10, "b": 44},
        },
        "config": {"responsive": false, "displayModeBar": false},
    })
}

/// The hover box of a figure.
pub(crate) fn hover(subject: &str, job: &str, text: &str) -> String {
    format!("<b>{subject}</b>, job {job}<br>{text}<extra></extra>")
}

/// A name in lines of at most `width` characters, broken at blanks, hyphens and the like, so that
/// an axis stays narrow; a longer piece stays whole.
pub(crate) fn folded(name: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for piece in name.split_inclusive([' ', '-', '/', '@', '+', ',', '_']) {
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + piece.trim_end().chars().count() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(piece);
        }
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("<br>")
}

/// The number of lines of a folded name.
pub(crate) fn lines_of(folded: &str) -> usize {
    folded.matches("<br>").count() + 1
}

#[cfg(test)]
mod tests {
    use super::{Look, folded};
    use std::collections::BTreeSet;

    #[test]
    fn no_two_series_are_alike() {
        let mut lines = BTreeSet::new();
        let mut bars = BTreeSet::new();
        let mut legends = BTreeSet::new();
        for index in 0..200 {
            let look = Look(index);
            assert!(lines.insert((look.colour(), look.dash(), look.symbol())));
            assert!(legends.insert(look.stroke()));
        }
        for index in 0..80 {
            let look = Look(index);
            assert!(bars.insert((look.colour(), look.pattern())));
            assert!(legends.insert(look.chip()));
        }
    }

    #[test]
    fn names_are_folded_at_their_joints() {
        assert_eq!(folded("md/ext4@host", 20), "md/ext4@host");
        assert_eq!(folded("raid5-without-a", 10), "raid5-<br>without-a");
        assert_eq!(folded("random read 4 KiB", 12), "random read<br>4 KiB");
        assert_eq!(folded("onelongpieceofaname", 5), "onelongpieceofaname");
    }
}
