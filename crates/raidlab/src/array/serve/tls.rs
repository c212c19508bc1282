//! TLS on the command line.

use raidlab_serve::server::TlsFiles;
use std::path::PathBuf;

/// Certificates and keys.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArguments {
    /// The server's certificate and those that vouch for it, in PEM.
    #[arg(long = "tls-certificate", value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,

    /// The certificate's private key, in PEM.
    #[arg(long = "tls-key", value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,

    /// Clients must show a certificate that one of these vouches for.
    #[arg(
        long = "tls-client-authority",
        value_name = "FILE",
        requires = "certificate"
    )]
    client_authority: Option<PathBuf>,

    /// Refuse clients that do not use TLS.
    #[arg(long = "require-tls", requires = "certificate")]
    pub require: bool,
}

impl TlsArguments {
    /// The files, if TLS is to be offered.
    pub fn files(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            certificate: self.certificate.clone()?,
            key: self.key.clone()?,
            client_authority: self.client_authority.clone(),
        })
    }
}
