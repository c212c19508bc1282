//! A connection's bytes, plain or through TLS.

use super::{socket::Socket, tls::TlsChannel};
use std::{
    io::{self, IoSlice, IoSliceMut},
    net::Shutdown,
    sync::Arc,
};

pub(super) struct Channel {
    pub socket: Arc<Socket>,
    pub tls: Option<TlsChannel>,
}

impl Channel {
    /// Reads some bytes; 0 at the end.
    pub fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match &self.tls {
            None => self.socket.read(bytes),
            Some(tls) => tls.read(&self.socket, bytes),
        }
    }

    /// Reads, like [`Self::read_into`], the bytes that have arrived, 0 at the end; `None` if there
    /// are none, or that cannot be determined.
    pub fn read_now(&self, first: &mut [u8], second: &mut [u8]) -> Option<usize> {
        let parts = &mut [IoSliceMut::new(first), IoSliceMut::new(second)];
        match &self.tls {
            None => self.socket.read_now(parts),
            Some(_) => None,
        }
    }

    /// Reads some bytes into `first`, and perhaps more into `second`.
    pub fn read_into(&self, first: &mut [u8], second: &mut [u8]) -> io::Result<usize> {
        match &self.tls {
            None => self
                .socket
                .read_vectored(&mut [IoSliceMut::new(first), IoSliceMut::new(second)]),
            Some(tls) => tls.read(&self.socket, first),
        }
    }

    /// Sends all of `parts`, whose slices are advanced in the process.
    pub fn write_all(&self, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        if let Some(tls) = &self.tls {
            return tls.write_all(&self.socket, parts);
        }
        while !parts.is_empty() {
            match self.socket.write_vectored(parts)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => IoSlice::advance_slices(&mut parts, count),
            }
        }
        Ok(())
    }

    pub fn close(&self) {
        if let Some(tls) = &self.tls {
            tls.close(&self.socket);
        }
        self.socket.shutdown(Shutdown::Both);
    }
}
