//! Serves a null or a memory disk over NBD until its standard input ends.
//!
//!     nbd_server unix:PATH|HOST:PORT null|memory BYTES [CERTIFICATE KEY [AUTHORITY]]
//!
//! The export's name is `disk`, also the default. With a certificate TLS is
//! required; with an authority clients must show a certificate too. Prints
//! `ready` and the TCP port when it listens.

use raidlab_serve::{
    export::{Export, MemoryExport, NullExport},
    server::{Exports, Listen, Server, ServerOptions, TlsClients, TlsFiles},
};
use std::{error::Error, io::Read, path::PathBuf, sync::Arc, time::Duration};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [place, kind, bytes, tls @ ..] = &arguments[..] else {
        return Err(
            "usage: nbd_server PLACE null|memory BYTES [CERTIFICATE KEY [AUTHORITY]]".into(),
        );
    };
    let bytes: u64 = bytes.parse()?;
    let export: Arc<dyn Export> = match kind.as_str() {
        "null" => Arc::new(NullExport::new(bytes)),
        "memory" => Arc::new(MemoryExport::new(bytes).ok_or("too large")?),
        _ => return Err("neither null nor memory".into()),
    };
    let mut exports = Exports::new();
    exports.add("disk", export)?;
    let place = match place.strip_prefix("unix:") {
        Some(path) => Listen::Unix(path.into()),
        None => Listen::Tcp {
            address: place.parse()?,
            anywhere: false,
        },
    };
    let tls = match tls {
        [] => None,
        [certificate, key, authority @ ..] => Some(TlsFiles {
            certificate: certificate.into(),
            key: key.into(),
            clients: match authority.first() {
                Some(authority) => TlsClients::Certified(PathBuf::from(authority)),
                None => TlsClients::Anyone,
            },
        }),
        [_] => return Err("a certificate needs its key".into()),
    };
    let options = ServerOptions {
        tls,
        ..ServerOptions::default()
    };
    let server = Server::start(exports, &[place], options, |client, error| {
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        eprintln!("connection {client}: {error}: {cause}");
    })?;
    match server.addresses() {
        [address, ..] => println!("ready {}", address.port()),
        [] => println!("ready"),
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    if !server.shut_down(Duration::from_secs(5)) {
        return Err("some requests were not answered in time".into());
    }
    Ok(())
}
