//! Shares of rates whose rates are struck out.

use raidlab_store::{Finding, Measurement, Operation, Scope, Severity};

/// The findings on shares of rates: a share says no more than the two rates that it was made from,
/// so what strikes one of these out strikes out the share.
pub(crate) fn of_struck_rates(rows: &[Measurement], findings: &[Finding]) -> Vec<Finding> {
    let fatal = |finding: &&Finding| finding.severity == Severity::Fatal;
    let mut all: Vec<Finding> = Vec::new();
    for kept in rows.iter().filter(|row| row.op == Operation::Kept) {
        for job in jobs(kept) {
            for source in rows.iter().filter(|row| is_source(kept, job, row)) {
                let of_source = findings.iter().filter(fatal);
                for finding in of_source.filter(|one| one.covers(source) && !one.covers(kept)) {
                    let found = Finding {
                        scope: Scope::of(kept),
                        op: Some(kept.op),
                        part: kept.part.clone(),
                        evidence: format!("of the rate of job {job}: {}", finding.evidence),
                        ..finding.clone()
                    };
                    let is_new = |one: &Finding| one.rule != found.rule || !one.covers(kept);
                    if all.iter().all(is_new) {
                        all.push(found);
                    }
                }
            }
        }
    }
    all
}

/// The jobs of which a share was made: the one beside the sync, and the one that its title names.
fn jobs(kept: &Measurement) -> impl Iterator<Item = &str> {
    let title = kept.job_title.strip_prefix("job ");
    let title = title.and_then(|title| title.strip_prefix(kept.job.as_str()));
    let title = title.and_then(|title| title.strip_prefix(", against job "));
    let other = title.and_then(|title| title.strip_suffix(" without a sync"));
    std::iter::once(kept.job.as_str()).chain(other)
}

/// Whether a share was made of this row of the job. The share's part names the job beside the sync,
/// the operation and the part.
fn is_source(kept: &Measurement, job: &str, row: &Measurement) -> bool {
    let part = [kept.job.as_str(), row.op.name(), row.part.as_str()].join(" ");
    !row.op.is_background()
        && row.job == job
        && kept.part == part.trim_end()
        && (&kept.host, &kept.subject) == (&row.host, &row.subject)
        && (&kept.filesystem, &kept.fit) == (&row.filesystem, &row.fit)
        && kept.repetition == row.repetition
}
