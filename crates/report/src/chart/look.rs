//! What all charts have in common.

use crate::format::thousands;
use plotly::color::Rgba;
use plotly::common::{Anchor, DashType, Font, Line, Marker, MarkerSymbol, Orientation, Title};
use plotly::configuration::{DisplayModeBar, ModeBarButtonName};
use plotly::layout::{Axis, AxisType, HoverMode, Legend, Margin, ModeBar};
use plotly::{Configuration, Layout, Plot, Trace};
use serde_json::Value;

/// Text colour of the page.
pub(crate) const INK: &str = "theme:ink";
/// Colour of what is said in passing.
pub(crate) const MUTED: &str = "theme:muted";
const GRID: &str = "theme:grid";
const CLEAR: &str = "rgba(0,0,0,0)";

/// Okabe and Ito, "Color Universal Design" (2008), without black, which a dark
/// page swallows. After their first six come three of ours for suites with many
/// subjects, and their yellow last, because white swallows it.
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

/// A subject's colour, as `#rrggbb`.
pub(crate) fn colour(subject: usize) -> String {
    let (red, green, blue) = COLOURS[subject % COLOURS.len()];
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A subject's colour with an opacity from 0 to 1.
pub(crate) fn tint(subject: usize, opacity: f64) -> Rgba {
    let (red, green, blue) = COLOURS[subject % COLOURS.len()];
    Rgba::new(red, green, blue, opacity)
}

/// A subject's marker, so that colour is never the only difference.
pub(crate) fn symbol(subject: usize, open: bool) -> MarkerSymbol {
    match (subject % 5, open) {
        (0, false) => MarkerSymbol::Circle,
        (0, true) => MarkerSymbol::CircleOpen,
        (1, false) => MarkerSymbol::Square,
        (1, true) => MarkerSymbol::SquareOpen,
        (2, false) => MarkerSymbol::Diamond,
        (2, true) => MarkerSymbol::DiamondOpen,
        (3, false) => MarkerSymbol::TriangleUp,
        (3, true) => MarkerSymbol::TriangleUpOpen,
        (_, false) => MarkerSymbol::TriangleDown,
        (_, true) => MarkerSymbol::TriangleDownOpen,
    }
}

/// A subject's marker in its colour; open for published figures.
pub(crate) fn marker(subject: usize, open: bool) -> Marker {
    let marker = Marker::new()
        .symbol(symbol(subject, open))
        .color(colour(subject));
    if open {
        marker.size(11).line(Line::new().width(2.0))
    } else {
        marker.size(8)
    }
}

/// A subject's line.
pub(crate) fn line(subject: usize, dash: DashType) -> Line {
    Line::new().color(colour(subject)).width(2.0).dash(dash)
}

/// An axis with its unit and direction in its title.
pub(crate) fn axis(title: &str) -> Axis {
    Axis::new()
        .title(Title::with_text(title).font(Font::new().size(13).color(MUTED)))
        .auto_margin(true)
        .grid_color(GRID)
        .line_color(GRID)
        .tick_color(GRID)
        .zero_line_color(GRID)
        .tick_font(Font::new().color(MUTED))
}

/// A logarithmic axis with ticks at 1, 2 and 5 of each decade.
pub(crate) fn log_axis(title: &str) -> Axis {
    let decades = -3..=7;
    let ticks = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(decade)));
    let ticks: Vec<f64> = ticks.collect();
    let texts = ticks.iter().map(|tick| {
        if *tick < 1.0 {
            tick.to_string()
        } else {
            thousands(*tick)
        }
    });
    axis(title)
        .type_(AxisType::Log)
        .tick_text(texts.collect())
        .tick_values(ticks)
}

/// A layout without its own title: the page has it as a heading.
pub(crate) fn layout() -> Layout {
    Layout::new()
        .auto_size(true)
        .paper_background_color(CLEAR)
        .plot_background_color(CLEAR)
        .font(
            Font::new()
                .family("system-ui, sans-serif")
                .size(13)
                .color(INK),
        )
        .margin(Margin::new().left(56).right(16).top(8).bottom(48))
        .hover_mode(HoverMode::Closest)
        .mode_bar(
            ModeBar::new()
                .background_color(CLEAR)
                .color(MUTED)
                .active_color(INK),
        )
        .legend(
            Legend::new()
                .orientation(Orientation::Horizontal)
                .x(0.0)
                .x_anchor(Anchor::Left)
                .y(1.02)
                .y_anchor(Anchor::Bottom),
        )
}

/// The figure in JSON, for `Plotly.react`.
pub(crate) fn plot(traces: Vec<Box<dyn Trace>>, layout: Layout) -> Value {
    let mut plot = Plot::new();
    plot.add_traces(traces);
    plot.set_layout(layout);
    plot.set_configuration(
        Configuration::new()
            .responsive(false)
            .display_logo(false)
            .display_mode_bar(DisplayModeBar::Hover)
            .mode_bar_buttons_to_remove(vec![
                ModeBarButtonName::Zoom2d,
                ModeBarButtonName::Pan2d,
                ModeBarButtonName::Select2d,
                ModeBarButtonName::Lasso2d,
                ModeBarButtonName::ZoomIn2d,
                ModeBarButtonName::ZoomOut2d,
                ModeBarButtonName::AutoScale2d,
            ]),
    );
    serde_json::to_value(plot).unwrap_or_default()
}

/// The hover box of a figure.
pub(crate) fn hover(subject: &str, job: &str, text: &str) -> String {
    format!("<b>{subject}</b>, job {job}<br>{text}<extra></extra>")
}
