//! The options of TLS on the command line.

use raidlab_serve::server::{TlsClients, TlsFiles};
use std::path::PathBuf;

/// Certificates and keys.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArguments {
    /// The server's certificate, with the certificates that sign it, in PEM.
    #[arg(long = "tls-certificate", value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,

    /// The certificate's private key, in PEM.
    #[arg(long = "tls-key", value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,

    /// Let in only clients over TLS with a certificate that one of the certificates in
    /// this file signs.
    #[arg(
        long = "tls-client-authority",
        value_name = "FILE",
        requires = "certificate"
    )]
    client_authority: Option<PathBuf>,

    /// Refuse clients that do not use TLS. --tls-client-authority implies it.
    #[arg(long = "require-tls", requires = "certificate")]
    require: bool,
}

impl TlsArguments {
    /// Whether clients are let in over TLS only.
    pub fn is_required(&self) -> bool {
        self.require || self.client_authority.is_some()
    }

    /// The files of TLS, if it is to be offered.
    pub fn files(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            certificate: self.certificate.clone()?,
            key: self.key.clone()?,
            clients: match (&self.client_authority, self.require) {
                (Some(authority), _) => TlsClients::Certified(authority.clone()),
                (None, true) => TlsClients::Anyone,
                (None, false) => TlsClients::AnyoneAlsoPlain,
            },
        })
    }
}
