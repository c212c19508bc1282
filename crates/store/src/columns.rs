//! The columns of rows of measurements, of member use and of published figures, as in the store's
//! tables and in CSV.

use crate::{DiskBand, Measurement, MemberUse, PublishedFigure, Role};

/// The value of a row in a column; `None` where it is not known.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column<'a> {
    Text(&'a str),
    Count(Option<u64>),
    Real(Option<f64>),
}

use Column::{Count, Real, Text};

/// Columns with their names, in the order of CSV.
pub(crate) type Columns<'a> = Vec<(&'static str, Column<'a>)>;

fn count(number: impl Into<u64>) -> Column<'static> {
    Count(Some(number.into()))
}

/// The text of a role in tables and exports.
pub(crate) const fn role_text(role: Role) -> &'static str {
    match role {
        Role::Measured => "measured",
        Role::Predicted => "predicted",
        Role::Fitted => "fitted",
    }
}

/// The columns of a measurement, without its histogram.
pub(crate) fn of_measurement(m: &Measurement) -> Columns<'_> {
    let band = |of: fn(DiskBand) -> f64| Real(m.disk_band.map(of));
    vec![
        ("bench", Text(&m.bench)),
        ("suite", Text(&m.suite)),
        ("host", Text(&m.host)),
        ("subject", Text(&m.subject)),
        ("filesystem", Text(&m.filesystem)),
        ("fit", Text(&m.fit)),
        ("sequence", count(m.sequence)),
        ("repetition", count(m.repetition)),
        ("tool", Text(&m.tool)),
        ("part", Text(&m.part)),
        ("job", Text(&m.job)),
        ("job_title", Text(&m.job_title)),
        ("class", Text(&m.class)),
        ("op", Text(m.op.name())),
        ("block_size_bytes", count(m.block_size_bytes)),
        ("queue_depth", count(m.queue_depth)),
        ("streams", count(m.streams)),
        ("total_ios", count(m.total_ios)),
        ("total_bytes", count(m.total_bytes)),
        ("started_ns", count(m.started_ns)),
        ("runtime_ns", count(m.runtime_ns)),
        ("iops", Real(Some(m.iops))),
        ("bytes_per_second", Real(Some(m.bytes_per_second))),
        ("cpu_percent", Real(m.cpu_percent)),
        ("latency_mean_ns", Real(Some(m.latency.mean_ns))),
        ("latency_p50_ns", count(m.latency.p50_ns)),
        ("latency_p90_ns", count(m.latency.p90_ns)),
        ("latency_p99_ns", count(m.latency.p99_ns)),
        ("latency_p999_ns", count(m.latency.p999_ns)),
        ("latency_max_ns", count(m.latency.max_ns)),
        ("array_state_start", Text(&m.array_state_start)),
        ("array_state_end", Text(&m.array_state_end)),
        ("sync_percent_start", Real(m.sync_percent_start)),
        ("sync_percent_end", Real(m.sync_percent_end)),
        ("tag_overflows_count", Count(m.tag_overflows)),
        ("leaped_percent", Real(Some(m.leaped_percent))),
        ("role", Text(role_text(m.role))),
        ("disk_band_low", band(|band| band.low)),
        ("disk_band_high", band(|band| band.high)),
        ("disk_band_ratio", band(|band| band.ratio)),
        ("runtime_band_ns", count(m.runtime_band_ns)),
        ("kept_percent", Real(m.kept_percent)),
    ]
}

/// The columns of what a member did.
pub(crate) fn of_member(member: &MemberUse) -> Columns<'_> {
    vec![
        ("member", Text(&member.member)),
        ("model", Text(&member.model)),
        ("read_ios", count(member.read_ios)),
        ("read_bytes", count(member.read_bytes)),
        ("read_ticks_ns", count(member.read_ticks_ns)),
        ("write_ios", count(member.write_ios)),
        ("write_bytes", count(member.write_bytes)),
        ("write_ticks_ns", count(member.write_ticks_ns)),
        ("busy_ns", count(member.busy_ns)),
        ("sync_bytes", Count(member.sync_bytes)),
    ]
}

/// The columns of a published figure.
pub(crate) fn of_published(figure: &PublishedFigure) -> Columns<'_> {
    vec![
        ("source", Text(&figure.source)),
        ("iops", Real(Some(figure.iops))),
        ("bytes_per_second", Real(figure.bytes_per_second)),
        ("reliability", Text(&figure.reliability)),
        ("sync_percent", Real(figure.sync_percent)),
        ("note", Text(&figure.note)),
    ]
}
