//! The server's answer to each option.

use super::agreed::{Agreed, Directory, HandshakeEvent, Session, TlsPolicy};
use crate::{
    ExportInfo, ProtocolError, SelectedContext,
    strings::{Reader, shortened, string},
    wire::{self, option, reply as kind},
};

/// Writes one option reply.
pub(super) fn reply(output: &mut Vec<u8>, option: u32, kind: u32, data: &[u8]) {
    output.extend_from_slice(&wire::OPTION_REPLY_MAGIC.to_be_bytes());
    output.extend_from_slice(&option.to_be_bytes());
    output.extend_from_slice(&kind.to_be_bytes());
    // Every caller's data is a few strings of at most 4,096 bytes.
    output.extend_from_slice(&(data.len() as u32).to_be_bytes());
    output.extend_from_slice(data);
}

/// A refusal: the reply's type and words for the client's user.
type Refusal = (u32, &'static str);

/// Answers an option whose `data` has wholly arrived.
pub(super) fn answer(
    option: u32,
    data: &[u8],
    (tls, agreed): (TlsPolicy, &mut Agreed),
    directory: &dyn Directory,
    output: &mut Vec<u8>,
) -> Result<Option<HandshakeEvent>, ProtocolError> {
    let plain = tls == TlsPolicy::Required && !agreed.secured;
    if option == option::EXPORT_NAME {
        return export_name(data, plain, agreed, directory, output).map(Some);
    }
    if option == option::ABORT {
        reply(output, option, kind::ACK, &[]);
        return Ok(Some(HandshakeEvent::Aborted));
    }
    let answered = if directory.is_shutting_down() {
        Err((kind::ERR_SHUTDOWN, "the server is shutting down"))
    } else if plain && option != option::STARTTLS {
        Err((kind::ERR_TLS_REQD, "this server talks over TLS only"))
    } else {
        match option {
            option::LIST => list(data, directory, output),
            option::STARTTLS => start_tls(data, tls, agreed),
            option::INFO | option::GO => info(option, data, agreed, directory, output),
            option::STRUCTURED_REPLY => structured_reply(data, agreed),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                meta_context(option, data, agreed, directory, output)
            }
            _ => Err((kind::ERR_UNSUP, "this option is not known here")),
        }
    };
    Ok(match answered {
        Ok(event) => {
            reply(output, option, kind::ACK, &[]);
            event
        }
        Err((kind, words)) => {
            reply(output, option, kind, words.as_bytes());
            None
        }
    })
}

fn export_name(
    data: &[u8],
    plain: bool,
    agreed: &mut Agreed,
    directory: &dyn Directory,
    output: &mut Vec<u8>,
) -> Result<HandshakeEvent, ProtocolError> {
    let name = string(data).ok_or(ProtocolError::BadString)?;
    let refused = || ProtocolError::ExportRefused(name.to_owned());
    if plain || directory.is_shutting_down() {
        return Err(refused());
    }
    let export = directory.find(name).ok_or_else(refused)?;
    output.extend_from_slice(&export.size_bytes.to_be_bytes());
    output.extend_from_slice(&export.flags.on_wire(agreed.structured).to_be_bytes());
    if !agreed.no_zeroes {
        output.extend_from_slice(&[0; wire::RESERVED_BYTES]);
    }
    Ok(ready(export, agreed))
}

/// Ends the handshake with an export; metadata contexts count only if chosen for this export.
fn ready(export: ExportInfo, agreed: &mut Agreed) -> HandshakeEvent {
    let contexts = agreed
        .contexts
        .take()
        .filter(|(name, _)| *name == export.name)
        .map(|(_, contexts)| contexts)
        .unwrap_or_default();
    HandshakeEvent::Ready(Box::new(Session {
        export,
        structured: agreed.structured,
        contexts,
    }))
}

fn list(
    data: &[u8],
    directory: &dyn Directory,
    output: &mut Vec<u8>,
) -> Result<Option<HandshakeEvent>, Refusal> {
    if !data.is_empty() {
        return Err((kind::ERR_INVALID, "a list takes no data"));
    }
    for (name, description) in directory.list() {
        let name = shortened(&name);
        let mut data = (name.len() as u32).to_be_bytes().to_vec();
        data.extend_from_slice(name.as_bytes());
        data.extend_from_slice(shortened(&description).as_bytes());
        reply(output, option::LIST, kind::SERVER, &data);
    }
    Ok(None)
}

fn start_tls(
    data: &[u8],
    tls: TlsPolicy,
    agreed: &Agreed,
) -> Result<Option<HandshakeEvent>, Refusal> {
    if !data.is_empty() {
        return Err((kind::ERR_INVALID, "TLS takes no data"));
    }
    if tls == TlsPolicy::Off {
        return Err((kind::ERR_POLICY, "this server has no TLS certificate"));
    }
    if agreed.secured {
        return Err((kind::ERR_INVALID, "TLS runs already"));
    }
    Ok(Some(HandshakeEvent::StartTls))
}

fn structured_reply(data: &[u8], agreed: &mut Agreed) -> Result<Option<HandshakeEvent>, Refusal> {
    if !data.is_empty() {
        return Err((kind::ERR_INVALID, "structured replies take no data"));
    }
    if agreed.structured {
        return Err((
            kind::ERR_INVALID,
            "structured replies are agreed on already",
        ));
    }
    agreed.structured = true;
    Ok(None)
}

/// Parses the name and the kinds of facts in `NBD_OPT_INFO` and `NBD_OPT_GO`.
fn parse_info(data: &[u8]) -> Option<(&str, Vec<u16>)> {
    let mut reader = Reader(data);
    let name = reader.counted_string()?;
    let count = reader.u16()?;
    let mut wanted = Vec::new();
    for _ in 0..count {
        wanted.push(reader.u16()?);
    }
    reader.is_empty().then_some((name, wanted))
}

fn info(
    option: u32,
    data: &[u8],
    agreed: &mut Agreed,
    directory: &dyn Directory,
    output: &mut Vec<u8>,
) -> Result<Option<HandshakeEvent>, Refusal> {
    let (name, wanted) = parse_info(data).ok_or((kind::ERR_INVALID, "malformed option"))?;
    let export = directory
        .find(name)
        .ok_or((kind::ERR_UNKNOWN, "there is no such export"))?;
    let mut fact = |info: u16, data: &[&[u8]]| {
        let mut bytes = info.to_be_bytes().to_vec();
        data.iter().for_each(|part| bytes.extend_from_slice(part));
        reply(output, option, kind::INFO, &bytes);
    };
    let flags = export.flags.on_wire(agreed.structured);
    fact(
        wire::info::EXPORT,
        &[&export.size_bytes.to_be_bytes(), &flags.to_be_bytes()],
    );
    if wanted.contains(&wire::info::NAME) {
        fact(wire::info::NAME, &[shortened(&export.name).as_bytes()]);
    }
    if wanted.contains(&wire::info::DESCRIPTION) && !export.description.is_empty() {
        let words = shortened(&export.description).as_bytes();
        fact(wire::info::DESCRIPTION, &[words]);
    }
    let sizes = export.block_sizes;
    // A client that did not ask for block sizes may still respect them.
    if wanted.contains(&wire::info::BLOCK_SIZE) || sizes.minimum > 1 {
        fact(
            wire::info::BLOCK_SIZE,
            &[
                &sizes.minimum.to_be_bytes(),
                &sizes.preferred.to_be_bytes(),
                &sizes.maximum.to_be_bytes(),
            ],
        );
    }
    Ok((option == option::GO).then(|| ready(export, agreed)))
}

/// Parses the export's name and the queries of the two context options.
fn parse_queries(data: &[u8]) -> Option<(&str, Vec<&str>)> {
    let mut reader = Reader(data);
    let name = reader.counted_string()?;
    let count = reader.u32()?;
    let mut queries = Vec::new();
    for _ in 0..count {
        queries.push(reader.counted_string()?);
    }
    reader.is_empty().then_some((name, queries))
}

fn meta_context(
    option: u32,
    data: &[u8],
    agreed: &mut Agreed,
    directory: &dyn Directory,
    output: &mut Vec<u8>,
) -> Result<Option<HandshakeEvent>, Refusal> {
    let choose = option == option::SET_META_CONTEXT;
    if choose {
        agreed.contexts = None;
    }
    if !agreed.structured {
        return Err((kind::ERR_INVALID, "contexts need structured replies"));
    }
    let (name, queries) = parse_queries(data).ok_or((kind::ERR_INVALID, "malformed option"))?;
    let export = directory
        .find(name)
        .ok_or((kind::ERR_UNKNOWN, "there is no such export"))?;
    let matches = |context: &str| {
        if queries.is_empty() {
            return !choose;
        }
        // A namespace alone lists the contexts in it; it chooses none.
        queries.iter().any(|&query| {
            query == context || (!choose && query.ends_with(':') && context.starts_with(query))
        })
    };
    let mut chosen = Vec::new();
    for (id, context) in (1_u32..).zip(&export.contexts) {
        if !matches(context) {
            continue;
        }
        let id_on_wire = if choose { id } else { 0 };
        let mut data = id_on_wire.to_be_bytes().to_vec();
        data.extend_from_slice(shortened(context).as_bytes());
        reply(output, option, kind::META_CONTEXT, &data);
        chosen.push(SelectedContext {
            id,
            name: context.clone(),
        });
    }
    if choose {
        agreed.contexts = Some((export.name, chosen));
    }
    Ok(None)
}
