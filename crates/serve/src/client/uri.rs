//! NBD's addresses: `nbd://HOST[:PORT]/NAME` and
//! `nbd+unix:///NAME?socket=PATH`, with `nbds` for TLS (doc/uri.md of the
//! NetworkBlockDevice project).

use std::{fmt, path::PathBuf, str::FromStr};

/// The port that is meant when none is given.
pub const DEFAULT_PORT: u16 = 10_809;

/// Where the server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A Unix socket.
    Unix(PathBuf),
    /// A host's name or address, and a port.
    Tcp(String, u16),
}

/// An export of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// Where the server is.
    pub place: Place,
    /// The export's name; empty for the default.
    pub export: String,
    /// Whether TLS is to be used.
    pub tls: bool,
}

/// Why an address is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// It begins with something else.
    #[error("{0:?} does not begin with nbd://, nbds://, nbd+unix:// or nbds+unix://")]
    Scheme(String),
    /// A Unix address without its socket.
    #[error("no ?socket=PATH in the address")]
    NoSocket,
    /// No host, or a port that is no number.
    #[error("no host, or no number for its port, in {0:?}")]
    Host(String),
    /// A % without two hexadecimal digits, or not UTF-8 behind it.
    #[error("{0:?} is not percent-encoded UTF-8")]
    Encoding(String),
    /// A parameter that is not known here.
    #[error("parameter {0:?} is not known")]
    Parameter(String),
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let unknown = || UriError::Scheme(text.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(unknown)?;
        let (tls, unix) = match scheme {
            "nbd" => (false, false),
            "nbds" => (true, false),
            "nbd+unix" => (false, true),
            "nbds+unix" => (true, true),
            _ => return Err(unknown()),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, export) = rest.split_once('/').unwrap_or((rest, ""));
        let mut socket = None;
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("socket", path)) if unix => socket = Some(decode(path)?),
                _ => return Err(UriError::Parameter(parameter.to_owned())),
            }
        }
        let place = if unix {
            let socket = socket.filter(|path| !path.is_empty());
            Place::Unix(socket.ok_or(UriError::NoSocket)?.into())
        } else {
            host(authority)?
        };
        Ok(Self {
            place,
            export: decode(export)?,
            tls,
        })
    }
}

fn host(authority: &str) -> Result<Place, UriError> {
    let wrong = || UriError::Host(authority.to_owned());
    let (host, port) = match authority.strip_prefix('[') {
        // An IPv6 address has colons of its own.
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
            (host, port.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().map_err(|_| wrong())?,
        None => DEFAULT_PORT,
    };
    if host.is_empty() {
        return Err(wrong());
    }
    Ok(Place::Tcp(host.to_owned(), port))
}

fn decode(text: &str) -> Result<String, UriError> {
    let wrong = || UriError::Encoding(text.to_owned());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || {
            let digit = char::from(rest.next()?).to_digit(16)?;
            u8::try_from(digit).ok()
        };
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(wrong());
        };
        bytes.push(high << 4 | low);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "{}", path.display()),
            Self::Tcp(host, port) => write!(formatter, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let uri = |text: &str| text.parse::<Uri>().unwrap();
        assert_eq!(
            uri("nbd+unix:///a%20b?socket=/run/x.sock"),
            Uri {
                place: Place::Unix("/run/x.sock".into()),
                export: "a b".to_owned(),
                tls: false,
            }
        );
        assert_eq!(
            uri("nbds://example.org").place,
            Place::Tcp("example.org".to_owned(), 10_809)
        );
        assert_eq!(
            uri("nbd://[::1]:5000/disk"),
            Uri {
                place: Place::Tcp("::1".to_owned(), 5000),
                export: "disk".to_owned(),
                tls: false,
            }
        );
    }

    #[test]
    fn what_is_no_address_is_told() {
        for (text, error) in [
            ("http://x/", UriError::Scheme("http://x/".to_owned())),
            ("nbd+unix:///x", UriError::NoSocket),
            ("nbd:///x", UriError::Host(String::new())),
            ("nbd://h:x/", UriError::Host("h:x".to_owned())),
            ("nbd://h/%4", UriError::Encoding("%4".to_owned())),
            ("nbd://h/?a=b", UriError::Parameter("a=b".to_owned())),
        ] {
            assert_eq!(text.parse::<Uri>(), Err(error));
        }
    }
}
