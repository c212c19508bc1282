//! The NBD client of tests and examples over sockets, with TLS or without.

#[path = "../../../nbd/tests/client/mod.rs"]
mod protocol;

pub use protocol::{Client, ClientError, Wishes};

use protocol::{Bytes, Handshake};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use std::{
    error::Error,
    io,
    net::TcpStream,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Where a server is.
#[derive(Debug, Clone)]
pub enum Place {
    /// A Unix socket.
    Unix(PathBuf),
    /// A host's name or address, and a port.
    Tcp(String, u16),
}

/// Reads an address as `raidlab serve` prints it, `nbd://HOST:PORT/NAME` or
/// `nbd+unix:///NAME?socket=PATH` or either with `nbds`; gives the place and the export.
/// No part of it may need an escape.
pub fn address(text: &str) -> Option<(Place, String)> {
    let (scheme, rest) = text.split_once("://")?;
    if scheme.ends_with("+unix") {
        let (export, socket) = rest.strip_prefix('/')?.split_once("?socket=")?;
        return Some((Place::Unix(socket.into()), export.to_owned()));
    }
    let (authority, export) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = authority.rsplit_once(':')?;
    let place = Place::Tcp(host.to_owned(), port.parse().ok()?);
    Some((place, export.to_owned()))
}

/// Whom to trust, and who to be.
#[derive(Debug, Clone)]
pub struct ClientTls {
    /// PEM file of trusted certificates.
    pub authority: PathBuf,
    /// The name in the server's certificate.
    pub server_name: String,
    /// PEM files of the client's own certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// Connects, without TLS or with it.
pub fn connect(
    place: &Place,
    tls: Option<&ClientTls>,
    wishes: &Wishes,
) -> Result<Client, ClientError> {
    meet(place, tls)?.go(wishes)
}

/// Names and descriptions of a server's exports.
pub fn list(place: &Place) -> Result<Vec<(String, String)>, ClientError> {
    meet(place, None)?.list()
}

fn meet(place: &Place, tls: Option<&ClientTls>) -> Result<Handshake, ClientError> {
    let handshake = Handshake::new(match place {
        Place::Unix(path) => Box::new(UnixStream::connect(path)?),
        Place::Tcp(host, port) => {
            let stream = TcpStream::connect((host.as_str(), *port))?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
    })?;
    match tls {
        None => Ok(handshake),
        Some(tls) => handshake.secured(|bytes| secure(bytes, tls)),
    }
}

/// Puts TLS on a connection and does its handshake.
fn secure(bytes: Box<dyn Bytes>, tls: &ClientTls) -> Result<Box<dyn Bytes>, ClientError> {
    let (config, name) = trust(tls).map_err(|error| io::Error::other(error.to_string()))?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, bytes);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(Box::new(stream))
}

fn trust(tls: &ClientTls) -> Result<(ClientConfig, ServerName<'static>), Box<dyn Error>> {
    let certificates = |path: &Path| -> Result<Vec<CertificateDer<'static>>, Box<dyn Error>> {
        Ok(CertificateDer::pem_file_iter(path)?.collect::<Result<_, _>>()?)
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&tls.authority)? {
        roots.add(certificate)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match &tls.certificate {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from_pem_file(key)?;
            config.with_client_auth_cert(certificates(certificate)?, key)?
        }
    };
    Ok((config, ServerName::try_from(tls.server_name.clone())?))
}
