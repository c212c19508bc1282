//! The names of the orders in which a host's queue sends what waits.

use std::str::FromStr;
use thiserror::Error;

/// Which of the commands that wait for a tag is the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// No scheduler: the command that came first goes first.
    #[default]
    None,
    /// The next one in a sweep that begins anew at its end.
    Sweep,
    /// As Linux's mq-deadline chooses.
    MqDeadline,
    /// As Linux's kyber chooses.
    Kyber,
    /// As Linux's BFQ chooses.
    Bfq,
}

/// A name that is no order.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{name}` is no order of a host's queue that is modelled; known are: {known}")]
pub struct UnknownOrder {
    /// The name as given.
    pub name: String,
    /// Every name that there is, for people.
    pub known: String,
}

impl Order {
    /// Every order with its name in files of hosts.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::None, "none"),
        (Self::Sweep, "sweep"),
        (Self::MqDeadline, "mq-deadline"),
        (Self::Kyber, "kyber"),
        (Self::Bfq, "bfq"),
    ];

    /// Whether it is one of Linux's schedulers: these hold a limited number of requests.
    pub(super) const fn is_scheduler(self) -> bool {
        matches!(self, Self::MqDeadline | Self::Kyber | Self::Bfq)
    }
}

impl FromStr for Order {
    type Err = UnknownOrder;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|entry| entry.1 == name);
        found.map(|entry| entry.0).ok_or_else(|| UnknownOrder {
            name: name.to_owned(),
            known: Self::ALL.map(|entry| entry.1).join(", "),
        })
    }
}
