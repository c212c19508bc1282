//! The sockets by which clients and administrators reach an export.

use super::{Arguments, Served};
use crate::failure::{Failure, Kind};
use crate::output;
use raidlab_serve::control::{ControlError, ControlServer, clients_path, control_path};
use raidlab_serve::server::{
    Limits, Listen, Listening, ServeError, Server, ServerOptions, check_export_name,
};
use raidlab_store::text::visible_path;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// The sockets by which an export is reached, before any connection is answered.
pub(super) struct Doors {
    pub(super) name: String,
    /// The control socket of an array.
    pub(super) control: Option<ControlServer>,
    pub(super) places: Vec<Listen>,
    pub(super) listening: Listening,
}

impl Doors {
    /// Opens the sockets for an export of this name.
    ///
    /// # Errors
    /// When a socket, an address or a certificate cannot be used.
    pub(super) fn open(arguments: &Arguments, name: &str) -> Result<Self, Failure> {
        check_export_name(name).map_err(Failure::usage)?;
        let is_array = arguments.assembling.has_devices();
        let control = is_array.then(|| control(arguments, name)).transpose()?;
        let places = places(arguments, name)?;
        let options = ServerOptions {
            limits: Limits {
                connections: arguments.connections as usize,
                stall_timeout: Duration::from_secs(arguments.client_timeout),
                ..Limits::default()
            },
            tls: arguments.tls.files(),
            ..ServerOptions::default()
        };
        Ok(Self {
            name: name.to_owned(),
            control,
            listening: Listening::open(&places, options).map_err(listen_failed)?,
            places,
        })
    }
}

/// Opens a control socket that does not answer yet: another server of that name is found out before
/// anything is served.
fn control(arguments: &Arguments, name: &str) -> Result<ControlServer, Failure> {
    let path = match &arguments.control {
        Some(path) => path.clone(),
        None => control_path(name)
            .map_err(|error| Failure::new(Kind::Usage, error).help("name the array with --name"))?,
    };
    ControlServer::listen(&path).map_err(|error| match arguments.assembling.has_inner_arrays() {
        // The sockets of inner arrays are named after the array, wherever its own is.
        true => Failure::new(Kind::Run, error)
            .help("`--name` gives it and its inner arrays other places"),
        false => no_control(error),
    })
}

/// The failure for an array that has no control socket, with a remedy.
pub(super) fn no_control(error: ControlError) -> Failure {
    Failure::new(Kind::Run, error).help("another name gives it another place, or `serve --control`")
}

/// The addresses to listen at: as asked, or beside the control socket if there is no other way
/// to the export.
fn places(arguments: &Arguments, name: &str) -> Result<Vec<Listen>, Failure> {
    let unix = arguments.unix.iter().cloned().map(Listen::Unix);
    let tcp = arguments.tcp.iter().map(|address| Listen::Tcp {
        address: *address,
        anywhere: arguments.anywhere,
    });
    let mut places: Vec<Listen> = unix.chain(tcp).collect();
    if places.is_empty() && !arguments.ublk.is_wanted() {
        let path = clients_path(name).map_err(|error| {
            Failure::new(Kind::Usage, error).help("say where to listen with --unix or --tcp")
        })?;
        places.push(Listen::Unix(path));
    }
    Ok(places)
}

/// The failure to listen, with a remedy.
pub(super) fn listen_failed(error: ServeError) -> Failure {
    let help = match &error {
        ServeError::NotLoopback(_) => "`--anywhere` allows it; better with TLS",
        ServeError::Listen { .. } => "choose another place with --unix or --tcp",
        ServeError::OnlyOffered(_) => {
            "add `--require-tls`, or `--tls-client-authority` to say who is let in"
        }
        ServeError::TlsFile { .. } | ServeError::Tls(_) => {
            let help = "`--tls-certificate`, `--tls-key` and `--tls-client-authority` name files \
                        in PEM";
            return Failure::new(Kind::Input, error).help(help);
        }
        ServeError::System(_) => "see `raidlab serve --help`",
    };
    Failure::new(Kind::Run, error).help(help)
}

/// Prints the export and its addresses.
pub(super) fn announce(
    arguments: &Arguments,
    name: &str,
    served: &Served,
    places: &[Listen],
    server: &Server,
    control: Option<&ControlServer>,
) {
    let export = served.export();
    let size = raidlab_units::Bytes(export.size_bytes());
    let mut tcp = server.addresses().iter();
    let title = name;
    let name = in_uri(name.as_bytes());
    output::say(&format!(
        "serving `{title}`: {}, {size}",
        export.description()
    ));
    let scheme = match arguments.tls.is_required() {
        true => "nbds",
        false => "nbd",
    };
    for place in places {
        let uri = match place {
            Listen::Unix(path) => {
                let socket = in_uri(path.as_os_str().as_bytes());
                format!("{scheme}+unix:///{name}?socket={socket}")
            }
            Listen::Tcp { address, .. } => {
                format!("{scheme}://{}/{name}", tcp.next().unwrap_or(address))
            }
        };
        output::say(&format!("  at {uri}"));
    }
    if let Some(control) = control {
        output::say(&format!("  control {}", visible_path(control.path())));
    }
}

/// A name or a path as a part of an address of NBD: bytes that have a meaning there, or cannot be
/// there, are written as `%` and two digits.
fn in_uri(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, &byte| {
        if byte.is_ascii_alphanumeric() || b"/-._~:".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::in_uri;

    #[test]
    fn a_name_stands_in_an_address_as_it_may() {
        assert_eq!(in_uri(b"vm:home-1_2.3"), "vm:home-1_2.3");
        assert_eq!(in_uri(b"my array & 100%?"), "my%20array%20%26%20100%25%3F");
        assert_eq!(in_uri("/tmp/\u{e4}.sock".as_bytes()), "/tmp/%C3%A4.sock");
    }
}
