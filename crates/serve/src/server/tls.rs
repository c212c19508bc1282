//! TLS: certificates from files, and a channel that two threads share.
//!
//! One thread reads, another writes, and the TLS state belongs to both: it is locked for the
//! work in memory only, never while a thread waits for the socket. Records must leave in the
//! order in which they were made, so a thread that makes records holds the sending lock until
//! they have left.

use super::{ServeError, socket::Socket};
use raidlab_units::visible_path;
use rustls::{
    RootCertStore, ServerConfig, ServerConnection,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
    server::WebPkiClientVerifier,
};
use std::{
    io::{self, IoSlice, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Files in PEM for a server's TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate and its chain of issuers.
    pub certificate: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
    /// The clients that the server admits.
    pub clients: TlsClients,
}

/// The clients that a server with a certificate admits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsClients {
    /// All clients, in plain text too.
    AnyoneAlsoPlain,
    /// All clients that use TLS.
    Anyone,
    /// Clients that show, over TLS, a certificate issued by one of those in this file.
    Certified(PathBuf),
}

impl TlsFiles {
    pub(super) fn load(&self) -> Result<Arc<ServerConfig>, ServeError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(ServeError::Tls)?;
        let builder = match &self.clients {
            TlsClients::AnyoneAlsoPlain | TlsClients::Anyone => builder.with_no_client_auth(),
            TlsClients::Certified(path) => {
                let roots = Arc::new(authorities(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|error| ServeError::TlsFile {
                        path: path.clone(),
                        reason: error.to_string(),
                    })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| match error {
            pem::Error::NoItemsFound => {
                unreadable(&self.key, "there is no key in it that needs no password")
            }
            error => unreadable(&self.key, error),
        })?;
        let config = builder
            .with_single_cert(certificates(&self.certificate)?, key)
            .map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => {
                    let certificate = visible_path(&self.certificate);
                    unreadable(&self.key, format!("it is not the key of {certificate}"))
                }
                error => ServeError::Tls(error),
            })?;
        Ok(Arc::new(config))
    }
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> ServeError {
    ServeError::TlsFile {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(path, error))?;
    match found.is_empty() {
        true => Err(unreadable(path, "there is no certificate in it")),
        false => Ok(found),
    }
}

/// Reads the certificates of a file as roots of trust.
pub(crate) fn authorities(path: &Path) -> Result<RootCertStore, ServeError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| unreadable(path, error))?;
    }
    Ok(roots)
}

/// Bytes of TLS that are read at once: the longest record.
const RECORD_BYTES: usize = 18 << 10;

/// The reading thread's state.
struct Incoming {
    raw: Vec<u8>,
    /// The part of `raw` that TLS has not processed yet.
    left: std::ops::Range<usize>,
}

/// A socket with TLS on it.
pub(super) struct TlsChannel {
    connection: Mutex<ServerConnection>,
    incoming: Mutex<Incoming>,
    /// Records made by the holder of this lock, on their way out.
    outgoing: Mutex<Vec<u8>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TlsChannel {
    /// Does the TLS handshake; `early` are bytes that have arrived already.
    pub fn accept(config: &Arc<ServerConfig>, socket: &Socket, early: &[u8]) -> io::Result<Self> {
        let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        let mut raw = early.to_vec();
        raw.resize(RECORD_BYTES.max(early.len()), 0);
        let channel = Self {
            connection: Mutex::new(connection),
            incoming: Mutex::new(Incoming {
                raw,
                left: 0..early.len(),
            }),
            outgoing: Mutex::default(),
        };
        while lock(&channel.connection).is_handshaking() {
            channel.send_records(socket)?;
            if lock(&channel.connection).is_handshaking() && !channel.take_records(socket)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        channel.send_records(socket)?;
        Ok(channel)
    }

    /// Passes bytes from the socket to TLS once; returns false at the end.
    fn take_records(&self, socket: &Socket) -> io::Result<bool> {
        let incoming = &mut *lock(&self.incoming);
        if incoming.left.is_empty() {
            let count = socket.read(&mut incoming.raw)?;
            incoming.left = 0..count;
            if count == 0 {
                return Ok(false);
            }
        }
        let mut connection = lock(&self.connection);
        let mut bytes = &incoming.raw[incoming.left.clone()];
        incoming.left.start += connection.read_tls(&mut bytes)?;
        let processed = connection.process_new_packets();
        drop(connection);
        if let Err(error) = processed {
            // The alert reports the reason to the client; the error here matters more.
            let _ = self.send_records(socket);
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        Ok(true)
    }

    fn send_records(&self, socket: &Socket) -> io::Result<()> {
        let records = &mut *lock(&self.outgoing);
        self.drain_records(records, socket)
    }

    fn drain_records(&self, records: &mut Vec<u8>, socket: &Socket) -> io::Result<()> {
        loop {
            records.clear();
            {
                let mut connection = lock(&self.connection);
                while connection.wants_write() {
                    connection.write_tls(records)?;
                }
            }
            if records.is_empty() {
                return Ok(());
            }
            socket.write_all(records)?;
        }
    }

    /// Reads decrypted bytes; 0 at the end.
    pub fn read(&self, socket: &Socket, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = lock(&self.connection).reader().read(bytes);
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without `close_notify` counts as an end: requests have lengths, so
                // truncation cannot go unnoticed.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                result => return result,
            }
            if !self.take_records(socket)? {
                return Ok(0);
            }
            if lock(&self.connection).wants_write() {
                self.send_records(socket)?;
            }
        }
    }

    /// Encrypts and sends all of `parts`.
    pub fn write_all(&self, socket: &Socket, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let records = &mut *lock(&self.outgoing);
        for mut rest in parts.iter().map(|part| &part[..]) {
            while !rest.is_empty() {
                let count = lock(&self.connection).writer().write(rest)?;
                rest = &rest[count..];
                if !rest.is_empty() {
                    self.drain_records(records, socket)?;
                }
            }
        }
        self.drain_records(records, socket)
    }

    /// Tells the other side that nothing more comes (TLS's `close_notify`).
    pub fn close(&self, socket: &Socket) {
        lock(&self.connection).send_close_notify();
        // The other side may be gone.
        let _ = self.send_records(socket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_used_are_named_with_what_they_lack() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls"));
        let refusal = |certificate, key, authority: Option<&str>| {
            let clients = match authority {
                Some(name) => TlsClients::Certified(folder.join(name)),
                None => TlsClients::Anyone,
            };
            let files = TlsFiles {
                certificate: folder.join(certificate),
                key: folder.join(key),
                clients,
            };
            let error = files.load().map(drop).err().map(|error| error.to_string());
            error.map(|words| words.replace(&format!("{}/", folder.display()), ""))
        };
        let (good, key) = ("server.pem", "server-key.pem");
        assert_eq!(refusal(good, key, Some("authority.pem")), None);
        let none = Some("server-key.pem: there is no certificate in it".to_owned());
        assert_eq!(refusal(key, key, None), none);
        assert_eq!(refusal(good, key, Some(key)), none);
        assert_eq!(
            refusal(good, good, None).as_deref(),
            Some("server.pem: there is no key in it that needs no password")
        );
        assert_eq!(
            refusal(good, "client-key.pem", None).as_deref(),
            Some("client-key.pem: it is not the key of server.pem")
        );
    }
}
