//! Ablations: a model without one of its features shows the effect of that feature.

use crate::medium::parameters::DiskParameters;
use crate::medium::platters::scheduling::Order;
use raidlab_units::Nanos;
use std::str::FromStr;
use thiserror::Error;

/// A feature of the disk model that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// Rotational position optimisation; without it, first come first served.
    Rpo,
    /// The rotational part of it; without it, shortest seek first.
    Rotation,
    /// The safety margin and the jitter; without them, perfect prediction.
    Margin,
    /// The overlap of command overhead with the command before.
    Overlap,
    /// Read-ahead and its segments.
    ReadAhead,
    /// Just-in-time seeks: where the arm would have to wait for the platter, it first reads ahead
    /// on its stream and leaves as late as possible.
    Slack,
    /// The wait for a follow-on read.
    FollowOnWait,
    /// The limit of a stream's visit while others wait.
    ChainLimit,
    /// Separate pools for reads and destages.
    SeparatePools,
    /// The write-back cache.
    WriteCache,
}

/// The error of a name that is no feature.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{name}` is not a feature of the disk model")]
pub struct UnknownFeature {
    /// The name as given.
    pub name: String,
}

impl Feature {
    /// All features, each with its name and the model's behaviour without it.
    pub const ALL: [(Self, &'static str, &'static str); 10] = [
        (
            Self::Rpo,
            "rpo",
            "the drive serves commands in order of arrival",
        ),
        (
            Self::Rotation,
            "rotation",
            "the drive orders by seek distance alone",
        ),
        (
            Self::Margin,
            "margin",
            "the drive predicts arrival perfectly and trusts it",
        ),
        (
            Self::Overlap,
            "overlap",
            "command overhead never overlaps the command before",
        ),
        (
            Self::ReadAhead,
            "read-ahead",
            "nothing is read that was not asked for",
        ),
        (
            Self::Slack,
            "slack",
            "rotational slack is not used for reading ahead",
        ),
        (
            Self::FollowOnWait,
            "follow-on-wait",
            "the arm leaves a stream at once when others wait",
        ),
        (
            Self::ChainLimit,
            "chain-limit",
            "contiguous commands are served before all others, for ever",
        ),
        (
            Self::SeparatePools,
            "separate-pools",
            "reads and destages compete in one pool",
        ),
        (
            Self::WriteCache,
            "write-cache",
            "writes complete on the medium",
        ),
    ];

    /// The feature's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|entry| entry.0 == self)
            .map_or("", |entry| entry.1)
    }
}

impl FromStr for Feature {
    type Err = UnknownFeature;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .find(|entry| entry.1 == name)
            .map(|entry| entry.0)
            .ok_or_else(|| UnknownFeature {
                name: name.to_owned(),
            })
    }
}

impl DiskParameters {
    /// The same disk without one feature. Features of arm and platters have no effect
    /// on other media.
    #[must_use]
    pub fn without(mut self, feature: Feature) -> Self {
        if feature == Feature::WriteCache {
            self.write_window = 0;
        }
        let Some(platters) = self.medium.platters_mut() else {
            return self;
        };
        match feature {
            Feature::Rpo => platters.scheduling.order = Order::Arrival,
            Feature::Rotation => platters.scheduling.order = Order::Seek,
            Feature::Margin => {
                platters.scheduling.margin_ns = 0;
                platters.scheduling.jitter_ns = 0;
            }
            Feature::Overlap => platters.overhead_queued = platters.overhead_idle,
            Feature::ReadAhead => platters.segments = 0,
            Feature::Slack => platters.stream.slack_limit = Nanos::ZERO,
            Feature::FollowOnWait => platters.stream.follow_on_wait = Nanos::ZERO,
            Feature::ChainLimit => platters.stream.visit_budget = None,
            Feature::SeparatePools => platters.scheduling.single_pool = true,
            Feature::WriteCache => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Feature;

    #[test]
    fn names_read_back() {
        for (feature, name, _) in Feature::ALL {
            assert_eq!(name.parse(), Ok(feature));
            assert_eq!(feature.name(), name);
        }
        assert!("ncq".parse::<Feature>().is_err());
    }
}
