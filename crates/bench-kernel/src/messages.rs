//! The messages of the agent in the guest to the bench outside: frames of JSON.
//!
//! Latency histograms are bytes, which JSON has not: they go beside their rows in hexadecimal.

use raidlab_lab::{ArrayLook, Finish, Progress};
use raidlab_store::{CellResult, Records};
use raidlab_uml::Frame;
use raidlab_units::{hexadecimal, reasons};
use serde::{Deserialize, Serialize};
use std::error::Error;

/// A message of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// The experiment has come to another step, or further in one.
    Progress(Progress),
    /// A look at the array in the guest has shown this state.
    Look(ArrayLook),
    /// Facts, commands, events or samples that belong into the store.
    Records(Records),
    /// A job has ended, with the rows that it gave.
    Cell(#[serde(with = "with_histograms")] Box<CellResult>),
    /// The experiment has ended.
    Ended(Ended),
}

/// The end of an experiment in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ended {
    /// Every step was carried out.
    Complete,
    /// The experiment was left before its end.
    Cancelled,
    /// The experiment failed, for these reasons, the outermost first.
    Failed(Vec<String>),
}

impl Ended {
    /// Makes the end from the result of the bench in the guest.
    pub(crate) fn of<E: Error>(finish: Result<Finish, E>) -> Self {
        match finish {
            Ok(Finish::Complete) => Self::Complete,
            Ok(Finish::Cancelled) => Self::Cancelled,
            Err(error) => Self::Failed(reasons(&error)),
        }
    }
}

impl Message {
    /// The message as a frame's bytes.
    ///
    /// # Errors
    /// When a value has no form in JSON.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, MessageError> {
        let kind = match self {
            Self::Ended(_) => raidlab_uml::END,
            _ => "message",
        };
        Ok(Frame::bytes(kind, &serde_json::to_vec(self)?))
    }

    /// Reads the message of a frame.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn read(frame: &Frame) -> Result<Self, MessageError> {
        Ok(serde_json::from_slice(&frame.payload)?)
    }
}

/// The form of a result, with the histograms of its rows.
mod with_histograms {
    use super::{CellResult, bytes, hexadecimal};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(result: &CellResult, to: S) -> Result<S::Ok, S::Error> {
        let rows = result.rows.iter();
        let histograms = rows.map(|row| hexadecimal(&row.latency.histogram));
        (result, histograms.collect::<Vec<_>>()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Box<CellResult>, D::Error> {
        let (mut result, histograms): (Box<CellResult>, Vec<String>) =
            Deserialize::deserialize(from)?;
        let damaged = || D::Error::custom("the histograms of its rows are damaged");
        if histograms.len() != result.rows.len() {
            return Err(damaged());
        }
        for (row, text) in result.rows.iter_mut().zip(&histograms) {
            row.latency.histogram = bytes(text).ok_or_else(damaged)?;
        }
        Ok(result)
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = hex
        .chars()
        .map(|digit| Some(u8::try_from(digit.to_digit(16)?).unwrap_or(0)))
        .collect();
    let digits = digits?;
    if digits.len() % 2 != 0 {
        return None;
    }
    let pairs = digits.chunks_exact(2);
    Some(pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// The error of a frame that is no message.
#[derive(Debug, thiserror::Error)]
#[error("the guest sent a frame that cannot be read")]
pub struct MessageError(#[from] serde_json::Error);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use raidlab_lab::SyncLook;
    use raidlab_store::{Measurement, Observation, Operation, Scope, Series};
    use raidlab_units::{Bytes, Nanos};

    fn round(message: &Message) -> Message {
        let mut reader = raidlab_uml::FrameReader::default();
        reader.feed(&message.bytes().expect("it has a form"));
        let frame = reader.take().expect("a frame").expect("as a whole");
        Message::read(&frame).expect("a message")
    }

    #[test]
    fn every_message_arrives_as_it_was_sent() {
        let mut row = Measurement::blank("host");
        row.latency.histogram = vec![0, 1, 0xfe, 0xff];
        row.latency.mean_ns = 8_024_123.75;
        row.iops = 124.633_333_333_333_33;
        let records = Records {
            observations: vec![Observation {
                scope: Scope::host("localhost"),
                name: "memory.total_bytes".to_owned(),
                value: "1".to_owned(),
                unit: "bytes".to_owned(),
                source: "/proc/meminfo".to_owned(),
            }],
            series: vec![Series {
                scope: Scope::default(),
                name: "sync.percent".to_owned(),
                unit: "percent".to_owned(),
                points: vec![(1, 0.1), (2, 1.0 / 3.0)],
            }],
            ..Records::default()
        };
        let cell = CellResult {
            cell: row.cell(),
            rows: vec![row.clone(), row],
            records: records.clone(),
        };
        for message in [
            Message::Progress(Progress {
                step: 3,
                steps: 7,
                clock: Nanos(u64::MAX),
            }),
            Message::Look(ArrayLook {
                at: Nanos(5),
                is_exact: true,
                letters: "[U_]".to_owned(),
                sync: Some(SyncLook {
                    op: Operation::Recovery,
                    percent: Some(0.1),
                    member: Some(Bytes(u64::MAX)),
                }),
                leaped: Nanos(2),
            }),
            Message::Records(records),
            Message::Cell(Box::new(cell)),
            Message::Ended(Ended::Complete),
            Message::Ended(Ended::Failed(vec!["one".to_owned(), "two".to_owned()])),
        ] {
            assert_eq!(round(&message), message);
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let frame = |kind: &str, payload: &[u8]| Frame {
            kind: kind.to_owned(),
            payload: payload.to_vec(),
        };
        for (kind, payload) in [
            ("message", r#"{"Hello": {}}"#),
            ("message", r#"{"Progress": "#),
            ("message", r#"{"Records": []}"#),
            ("end", r#"{"Ended": "Perhaps"}"#),
        ] {
            Message::read(&frame(kind, payload.as_bytes())).expect_err(payload);
        }
        let row = Measurement::blank("host");
        let cell = CellResult {
            cell: row.cell(),
            rows: vec![row],
            records: Records::default(),
        };
        let cell = serde_json::to_string(&cell).expect("it has a form");
        for (histograms, is_whole) in [(r#"["0a"]"#, true), (r#"["0"]"#, false), ("[]", false)] {
            let payload = format!(r#"{{"Cell": [{cell}, {histograms}]}}"#);
            let read = Message::read(&frame("message", payload.as_bytes()));
            assert_eq!(read.is_ok(), is_whole, "{histograms}");
        }
        assert_eq!(bytes("0"), None);
        assert_eq!(bytes("0g"), None);
        assert_eq!(bytes("€€"), None);
    }

    proptest! {
        #[test]
        fn hexadecimal_digits_are_read_back(data in prop::collection::vec(any::<u8>(), 0..50)) {
            prop_assert_eq!(bytes(&hexadecimal(&data)), Some(data));
        }
    }
}
