//! The client's connection: a socket, with or without TLS.

use super::{ClientError, ClientTls, uri::Place};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use std::{
    io::{self, Read, Write},
    net::{IpAddr, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    sync::Arc,
};

/// A connection's bytes.
pub(super) trait Bytes: Read + Write + Send {}

impl<T: Read + Write + Send> Bytes for T {}

pub(super) fn connect(place: &Place) -> Result<Box<dyn Bytes>, ClientError> {
    let failed = |source| ClientError::Connect {
        place: place.to_string(),
        source,
    };
    Ok(match place {
        Place::Unix(path) => Box::new(UnixStream::connect(path).map_err(failed)?),
        Place::Tcp(host, port) => {
            let stream = TcpStream::connect((host.as_str(), *port)).map_err(failed)?;
            stream.set_nodelay(true).map_err(failed)?;
            Box::new(stream)
        }
    })
}

/// Puts TLS on a connection and does its handshake.
pub(super) fn secure(
    bytes: Box<dyn Bytes>,
    place: &Place,
    tls: &ClientTls,
) -> Result<Box<dyn Bytes>, ClientError> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(ClientError::Tls)?
        .with_root_certificates(authorities(&tls.authority)?);
    let config = match &tls.certificate {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error))?;
            config
                .with_client_auth_cert(certificates(certificate)?, key)
                .map_err(ClientError::Tls)?
        }
    };
    let name = match place {
        _ if !tls.server_name.is_empty() => tls.server_name.clone(),
        Place::Unix(_) => "localhost".to_owned(),
        Place::Tcp(host, _) => host.clone(),
    };
    let name = match name.parse::<IpAddr>() {
        Ok(address) => ServerName::from(address),
        Err(_) => ServerName::try_from(name).map_err(|_| ClientError::ServerName)?,
    };
    let connection = ClientConnection::new(Arc::new(config), name).map_err(ClientError::Tls)?;
    let mut stream = StreamOwned::new(connection, bytes);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(Box::new(stream))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(path, error))
}

fn authorities(path: &Path) -> Result<RootCertStore, ClientError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| unreadable(path, error))?;
    }
    Ok(roots)
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> ClientError {
    ClientError::TlsFile {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

/// An end of the stream where none may be.
pub(super) fn ended() -> ClientError {
    ClientError::Io(io::ErrorKind::UnexpectedEof.into())
}
