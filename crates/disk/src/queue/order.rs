//! The names of the orders in which a host's queue sends waiting commands.

use std::str::FromStr;
use thiserror::Error;

/// The order by which the next of the commands that wait for a tag is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// No scheduler: the command that came first goes first.
    #[default]
    None,
    /// A sweep in ascending order, which begins again at its end.
    Sweep,
    /// The order of Linux's mq-deadline.
    MqDeadline,
    /// The order of Linux's kyber.
    Kyber,
    /// The order of Linux's BFQ.
    Bfq,
}

/// The error of a name that is no order.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{name}` is no order of a host's queue that is modelled; known are: {known}")]
pub struct UnknownOrder {
    /// The name as given.
    pub name: String,
    /// The names of all orders, for people.
    pub known: String,
}

impl Order {
    /// All orders with their names in files of hosts.
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
