//! What the agent in the guest tells the bench outside: frames of JSON.
//!
//! Latency histograms are bytes, which JSON has not: they go beside their rows
//! in hexadecimal.

use raidlab_lab::{ArrayLook, Finish, Progress, SyncLook};
use raidlab_store::{Cell, CellResult, Measurement, Operation, Records};
use raidlab_uml::Frame;
use raidlab_units::{Bytes, Nanos, hexadecimal, reasons};
use serde::{Deserialize, Serialize};
use std::error::Error;

/// Something that the agent tells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// The experiment has come to another step, or further in one.
    Progress(Progress),
    /// What a look at the array in the guest has shown.
    Look(ArrayLook),
    /// Facts, commands, events or samples that belong into the store.
    Records(Records),
    /// A job has ended, with the rows that it gave.
    Cell(Box<CellResult>),
    /// The experiment has ended.
    Ended(Ended),
}

/// How an experiment ended in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ended {
    /// Every step was carried out.
    Complete,
    /// It was left before its end.
    Cancelled,
    /// It failed, for these reasons, the outermost first.
    Failed(Vec<String>),
}

impl Ended {
    /// From what the bench in the guest returned.
    pub(crate) fn of<E: Error>(finish: Result<Finish, E>) -> Self {
        match finish {
            Ok(Finish::Complete) => Self::Complete,
            Ok(Finish::Cancelled) => Self::Cancelled,
            Err(error) => Self::Failed(reasons(&error)),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct WireProgress {
    step: usize,
    steps: usize,
    clock_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct WireLook {
    at_ns: u64,
    is_exact: bool,
    letters: String,
    sync: Option<(Operation, Option<f64>, Option<u64>)>,
    leaped_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct WireCell {
    cell: Cell,
    rows: Vec<Measurement>,
    histograms: Vec<String>,
    records: Records,
}

impl Message {
    /// The message as a frame's bytes.
    ///
    /// # Errors
    /// When a value has no form in JSON.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, MessageError> {
        let (kind, payload) = match self {
            Self::Progress(progress) => {
                let wire = WireProgress {
                    step: progress.step,
                    steps: progress.steps,
                    clock_ns: progress.clock.0,
                };
                ("progress", serde_json::to_vec(&wire))
            }
            Self::Look(look) => {
                let sync = |sync: SyncLook| (sync.op, sync.percent, sync.member.map(|it| it.0));
                let wire = WireLook {
                    at_ns: look.at.0,
                    is_exact: look.is_exact,
                    letters: look.letters.clone(),
                    sync: look.sync.map(sync),
                    leaped_ns: look.leaped.0,
                };
                ("look", serde_json::to_vec(&wire))
            }
            Self::Records(records) => ("records", serde_json::to_vec(records)),
            Self::Cell(result) => {
                let histograms = result
                    .rows
                    .iter()
                    .map(|row| hexadecimal(&row.latency.histogram));
                let wire = WireCell {
                    cell: result.cell.clone(),
                    histograms: histograms.collect(),
                    rows: result.rows.clone(),
                    records: result.records.clone(),
                };
                ("cell", serde_json::to_vec(&wire))
            }
            Self::Ended(ended) => (raidlab_uml::END, serde_json::to_vec(ended)),
        };
        Ok(Frame::bytes(kind, &payload?))
    }

    /// The message of a frame.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn read(frame: &Frame) -> Result<Self, MessageError> {
        let payload = &frame.payload;
        Ok(match frame.kind.as_str() {
            "progress" => {
                let wire: WireProgress = serde_json::from_slice(payload)?;
                Self::Progress(Progress {
                    step: wire.step,
                    steps: wire.steps,
                    clock: Nanos(wire.clock_ns),
                })
            }
            "look" => {
                let wire: WireLook = serde_json::from_slice(payload)?;
                Self::Look(ArrayLook {
                    at: Nanos(wire.at_ns),
                    is_exact: wire.is_exact,
                    letters: wire.letters,
                    sync: wire.sync.map(|(op, percent, member)| SyncLook {
                        op,
                        percent,
                        member: member.map(Bytes),
                    }),
                    leaped: Nanos(wire.leaped_ns),
                })
            }
            "records" => Self::Records(serde_json::from_slice(payload)?),
            "cell" => {
                let wire: WireCell = serde_json::from_slice(payload)?;
                if wire.histograms.len() != wire.rows.len() {
                    return Err(MessageError::Histograms);
                }
                let mut rows = wire.rows;
                for (row, text) in rows.iter_mut().zip(&wire.histograms) {
                    row.latency.histogram = bytes(text).ok_or(MessageError::Histograms)?;
                }
                Self::Cell(Box::new(CellResult {
                    cell: wire.cell,
                    rows,
                    records: wire.records,
                }))
            }
            raidlab_uml::END => Self::Ended(serde_json::from_slice(payload)?),
            other => {
                return Err(MessageError::Kind {
                    kind: other.to_owned(),
                });
            }
        })
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

/// A frame that is no message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The frame is of a kind that no message has.
    #[error("the guest sent a frame of the unknown kind `{kind}`")]
    Kind {
        /// The kind, as the frame says it.
        kind: String,
    },
    /// The frame's JSON is not that of a message of its kind.
    #[error("the guest sent a frame that cannot be read")]
    Json(#[from] serde_json::Error),
    /// Histograms do not go with the rows.
    #[error("the guest sent rows whose histograms are damaged")]
    Histograms,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use raidlab_store::{Observation, Scope, Series};

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
            ("hello", &b"{}"[..]),
            ("progress", b"{"),
            ("records", b"[]"),
            ("end", b"\"Perhaps\""),
        ] {
            Message::read(&frame(kind, payload)).expect_err(kind);
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
