//! The client's side of the control socket.

use super::lines::{Line, read_line};
use super::server::MAXIMUM_CONNECTIONS;
use super::{ControlRequest, ControlResponse, EventReport};
use raidlab_units::visible_path;
use rustix::net::sockopt::socket_peercred;
use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The reason why an array cannot be controlled.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No server listens at the array's socket.
    #[error("no array is served at {}", visible_path(.path))]
    Connect {
        /// The path of the socket that was tried.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The connection to the server broke.
    #[error("speaking to the array's server")]
    Io(#[from] io::Error),
    /// The server closed the connection.
    #[error(
        "the array's server has closed the connection: it has ended, or it speaks to \
         {most} others at its control socket already",
        most = MAXIMUM_CONNECTIONS
    )]
    Closed,
    /// An answer that no server of this version sends.
    #[error("an answer that cannot be understood")]
    Answer(#[source] serde_json::Error),
    /// The server refuses the request.
    #[error("{0}")]
    Refused(String),
}

/// A connection to a control socket.
#[derive(Debug)]
pub struct ControlClient {
    reader: BufReader<UnixStream>,
}

impl ControlClient {
    /// Connects to a control socket.
    ///
    /// # Errors
    /// When no server listens there.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let stream = UnixStream::connect(path).map_err(|source| ClientError::Connect {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            reader: BufReader::new(stream),
        })
    }

    /// Returns the process that listens at the socket, as far as the kernel says.
    #[must_use]
    pub fn server(&self) -> Option<u32> {
        let peer = socket_peercred(self.reader.get_ref()).ok()?;
        u32::try_from(peer.pid.as_raw_pid()).ok()
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// When the server refuses, or the connection breaks.
    pub fn ask(&mut self, request: &ControlRequest) -> Result<ControlResponse, ClientError> {
        let mut line = serde_json::to_vec(request).map_err(ClientError::Answer)?;
        line.push(b'\n');
        self.reader.get_mut().write_all(&line).map_err(broken)?;
        match self.next()? {
            ControlResponse::Refused { error } => Err(ClientError::Refused(error)),
            response => Ok(response),
        }
    }

    /// Asks for events; [`Self::next_event`] returns each.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn watch(&mut self) -> Result<(), ClientError> {
        self.ask(&ControlRequest::Events {}).map(drop)
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// When the connection ends.
    pub fn next_event(&mut self) -> Result<EventReport, ClientError> {
        loop {
            if let ControlResponse::Event { event } = self.next()? {
                return Ok(event);
            }
        }
    }

    fn next(&mut self) -> Result<ControlResponse, ClientError> {
        match read_line(&mut self.reader).map_err(broken)? {
            Line::Whole(line) => serde_json::from_slice(&line).map_err(ClientError::Answer),
            Line::TooLong | Line::End => Err(ClientError::Closed),
        }
    }
}

/// The error of a connection that broke. A server that speaks to too many others closes at once, so
/// a write fails, or what was written is never read.
fn broken(error: io::Error) -> ClientError {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => ClientError::Closed,
        _ => ClientError::Io(error),
    }
}
