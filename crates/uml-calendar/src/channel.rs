//! Messages over a stream socket, one at a time.
//!
//! A stream knows no messages, and file descriptors travel beside its bytes. So never more is read
//! than the message at hand still lacks: the descriptors that a message brought along then belong
//! to it, and the next one stays in the socket, where polling sees it.

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg, sockopt,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// The most descriptors that one message brings: one for each region of a guest's memory, of which
/// the front-ends have eight.
const MOST_DESCRIPTORS: usize = 8;

/// A function that tells a message's length by its beginning: the bytes of the header until the
/// header is there, then those of the whole. `None` for a length that no message has.
pub(crate) type Framing = fn(&[u8]) -> Option<usize>;

/// A message as it came, with its descriptors.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// The result of a look into the socket.
#[derive(Debug)]
pub(crate) enum Received {
    /// The message is not complete yet.
    Nothing,
    /// A whole message, with the descriptors that it brought.
    Message(Message),
    /// The peer has gone, between two messages.
    Closed,
}

/// The reason why a socket is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The peer announced more bytes than any message has.
    #[error("a message of impossible length")]
    Length,
    /// The peer went away in the middle of a message.
    #[error("the peer went away in the middle of a message")]
    Truncated,
    /// The peer has gone, or does not read.
    #[error("the peer takes no messages any more")]
    Gone,
    /// The system reports an error of the socket.
    #[error("the socket failed")]
    System(#[source] std::io::Error),
}

/// One end of a stream socket.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    framing: Framing,
    partial: Message,
}

impl Channel {
    /// Makes a channel over `socket`. A peer that reads nothing for `patience` counts as gone.
    pub(crate) fn new(
        socket: OwnedFd,
        framing: Framing,
        patience: Duration,
    ) -> Result<Self, ChannelError> {
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(patience))
            .map_err(system)?;
        Ok(Self {
            socket,
            framing,
            partial: Message::default(),
        })
    }

    /// Reads the bytes that are there, at most to the end of one message.
    pub(crate) fn receive(&mut self) -> Result<Received, ChannelError> {
        self.read(RecvFlags::DONTWAIT)
    }

    /// Reads in the same way, and waits for bytes, at most as long
    /// as [`Self::set_longest_wait`] says.
    pub(crate) fn wait(&mut self) -> Result<Received, ChannelError> {
        self.read(RecvFlags::empty())
    }

    /// Sets the time for which [`Self::wait`] waits for more bytes.
    pub(crate) fn set_longest_wait(&self, time: Duration) -> Result<(), ChannelError> {
        let receive = sockopt::Timeout::Recv;
        sockopt::set_socket_timeout(&self.socket, receive, Some(time)).map_err(system)
    }

    fn read(&mut self, flags: RecvFlags) -> Result<Received, ChannelError> {
        loop {
            let have = self.partial.bytes.len();
            let need = (self.framing)(&self.partial.bytes).ok_or(ChannelError::Length)?;
            if have >= need && have > 0 {
                return Ok(Received::Message(std::mem::take(&mut self.partial)));
            }
            self.partial.bytes.resize(need, 0);
            let read = read_some(
                self.socket.as_fd(),
                &mut self.partial.bytes[have..],
                &mut self.partial.descriptors,
                flags,
            );
            let read_bytes = read.as_ref().map_or(0, |&bytes| bytes);
            self.partial.bytes.truncate(have + read_bytes);
            match read {
                Ok(0) | Err(Errno::CONNRESET) if have == 0 => return Ok(Received::Closed),
                Ok(0) | Err(Errno::CONNRESET) => return Err(ChannelError::Truncated),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Received::Nothing),
                Err(error) => return Err(system(error)),
            }
        }
    }

    /// Sends a whole message, with descriptors beside its first byte.
    pub(crate) fn send(
        &self,
        bytes: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), ChannelError> {
        let mut sent = 0;
        while sent < bytes.len() {
            let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            if sent == 0 && !descriptors.is_empty() {
                ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
            }
            let rest = [IoSlice::new(&bytes[sent..])];
            match sendmsg(&self.socket, &rest, &mut ancillary, SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET | Errno::AGAIN) => {
                    return Err(ChannelError::Gone);
                }
                Err(error) => return Err(system(error)),
            }
        }
        Ok(())
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn system(error: Errno) -> ChannelError {
    ChannelError::System(error.into())
}

fn read_some(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
    flags: RecvFlags,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        socket,
        &mut [IoSliceMut::new(bytes)],
        &mut ancillary,
        flags | RecvFlags::CMSG_CLOEXEC,
    )?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            // Descriptors beyond the most that a message may bring are closed again.
            descriptors
                .extend(rights.take(MOST_DESCRIPTORS - descriptors.len().min(MOST_DESCRIPTORS)));
        }
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests;
