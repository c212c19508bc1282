//! The client's side of the handshake.
//!
//! A fixed order of options: TLS if wished (and then required), structured
//! replies, metadata contexts, and at last the list, the facts or the
//! beginning. Structured replies and contexts may be refused without harm; a
//! server that does not know `NBD_OPT_GO` is asked by `NBD_OPT_EXPORT_NAME`.

use crate::{
    BlockSizes, ProtocolError, SelectedContext, TransmissionFlags,
    strings::{Reader, gather, shortened, string},
    wire::{self, option, reply as kind},
};

/// What the handshake is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Transmission.
    Go,
    /// The names of the exports.
    List,
}

/// What the client would like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wishes {
    /// What for.
    pub purpose: Purpose,
    /// The export's name, cut to what the protocol allows; empty for the
    /// default.
    pub export: String,
    /// Upgrade to TLS, or fail.
    pub tls: bool,
    /// Replies in chunks; without them there are no contexts.
    pub structured: bool,
    /// Metadata contexts, such as `base:allocation`.
    pub contexts: Vec<String>,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            purpose: Purpose::Go,
            export: String::new(),
            tls: false,
            structured: true,
            contexts: Vec::new(),
        }
    }
}

/// What was agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Session {
    /// Size in bytes.
    pub size_bytes: u64,
    /// What the export can do.
    pub flags: TransmissionFlags,
    /// Constraints on requests; the protocol's defaults if nothing was said.
    pub block_sizes: BlockSizes,
    /// For a human reader.
    pub description: String,
    /// Whether replies come in chunks.
    pub structured: bool,
    /// Contexts that were granted.
    pub contexts: Vec<SelectedContext>,
}

/// What the handshake has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandshakeEvent {
    /// Do the TLS handshake, then call [`Handshake::secured`]. All further
    /// bytes belong to TLS.
    StartTls,
    /// Names and descriptions of the exports; `NBD_OPT_ABORT` was written.
    Listed(Vec<(String, String)>),
    /// Transmission begins.
    Ready(Box<Session>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Greeting,
    Reply(u32),
    ExportName,
    Over,
}

/// Most exports in a list, facts and contexts in an answer.
const MAXIMUM_EXPORTS: usize = 4096;
const MAXIMUM_FACTS: usize = 64;
const GREETING_BYTES: usize = 18;
const REPLY_HEADER_BYTES: usize = 20;

/// The handshake's state.
#[derive(Debug)]
pub struct Handshake {
    wishes: Wishes,
    phase: Phase,
    partial: Vec<u8>,
    no_zeroes: bool,
    session: Session,
    has_export_fact: bool,
    facts: usize,
    listed: Vec<(String, String)>,
}

impl Handshake {
    /// Waits for the greeting.
    #[must_use]
    pub fn new(wishes: Wishes) -> Self {
        Self {
            wishes,
            phase: Phase::Greeting,
            partial: Vec::new(),
            no_zeroes: false,
            session: Session::default(),
            has_export_fact: false,
            facts: 0,
            listed: Vec::new(),
        }
    }

    /// The connection is encrypted from now on; goes on to the next option.
    pub fn secured(&mut self, output: &mut Vec<u8>) {
        self.ask_structured(output);
    }

    /// Takes bytes: at most one reply. Gives the number of bytes taken and
    /// what has come of them; to be called again while bytes are left and no
    /// event came. What is to be sent is written to `output`.
    ///
    /// # Errors
    ///
    /// The server broke the protocol or refused something needed; close.
    pub fn receive(
        &mut self,
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(usize, Option<HandshakeEvent>), ProtocolError> {
        match self.phase {
            Phase::Greeting => {
                let (taken, complete) = gather(&mut self.partial, input, GREETING_BYTES);
                if complete {
                    self.greeting(output)?;
                    self.partial.clear();
                }
                Ok((taken, None))
            }
            Phase::Reply(sent) => self.reply(sent, input, output),
            Phase::ExportName => {
                let zeroes = if self.no_zeroes {
                    0
                } else {
                    wire::RESERVED_BYTES
                };
                let (taken, complete) = gather(&mut self.partial, input, 10 + zeroes);
                if !complete {
                    return Ok((taken, None));
                }
                let mut reader = Reader(&self.partial);
                self.session.size_bytes = reader.u64().unwrap_or(0);
                self.session.flags = TransmissionFlags(reader.u16().unwrap_or(0));
                // Contexts come only with the options that this server lacks.
                self.session.contexts.clear();
                Ok((taken, Some(self.ready())))
            }
            Phase::Over => Ok((0, None)),
        }
    }

    fn greeting(&mut self, output: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let mut reader = Reader(&self.partial);
        let magics = (reader.u64(), reader.u64());
        if magics != (Some(wire::GREETING_MAGIC), Some(wire::OPTION_MAGIC)) {
            return Err(ProtocolError::Greeting);
        }
        let flags = reader.u16().unwrap_or(0);
        if flags & wire::FLAG_FIXED_NEWSTYLE == 0 {
            return Err(ProtocolError::NotFixed);
        }
        self.no_zeroes = flags & wire::FLAG_NO_ZEROES != 0;
        let ours = flags & (wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES);
        output.extend_from_slice(&u32::from(ours).to_be_bytes());
        if self.wishes.tls {
            self.ask(option::STARTTLS, &[], output);
        } else {
            self.ask_structured(output);
        }
        Ok(())
    }

    fn ask(&mut self, option: u32, data: &[u8], output: &mut Vec<u8>) {
        output.extend_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
        output.extend_from_slice(&option.to_be_bytes());
        // A few names, each shortened to 4,096 bytes.
        output.extend_from_slice(&(data.len() as u32).to_be_bytes());
        output.extend_from_slice(data);
        self.phase = Phase::Reply(option);
    }

    fn ask_structured(&mut self, output: &mut Vec<u8>) {
        if self.wishes.structured && self.wishes.purpose == Purpose::Go {
            self.ask(option::STRUCTURED_REPLY, &[], output);
        } else {
            self.ask_last(output);
        }
    }

    fn ask_contexts(&mut self, output: &mut Vec<u8>) {
        if !self.session.structured || self.wishes.contexts.is_empty() {
            return self.ask_last(output);
        }
        let mut data = Vec::new();
        let contexts = self.wishes.contexts.iter().take(MAXIMUM_FACTS / 8);
        put_string(&mut data, &self.wishes.export);
        data.extend_from_slice(&(contexts.len() as u32).to_be_bytes());
        contexts.for_each(|context| put_string(&mut data, context));
        self.ask(option::SET_META_CONTEXT, &data, output);
    }

    fn ask_last(&mut self, output: &mut Vec<u8>) {
        if self.wishes.purpose == Purpose::List {
            return self.ask(option::LIST, &[], output);
        }
        let mut data = Vec::new();
        put_string(&mut data, &self.wishes.export);
        let facts = [wire::info::DESCRIPTION, wire::info::BLOCK_SIZE];
        data.extend_from_slice(&(facts.len() as u16).to_be_bytes());
        facts
            .iter()
            .for_each(|fact| data.extend_from_slice(&fact.to_be_bytes()));
        self.ask(option::GO, &data, output);
    }

    fn ready(&mut self) -> HandshakeEvent {
        self.phase = Phase::Over;
        self.partial.clear();
        HandshakeEvent::Ready(Box::new(std::mem::take(&mut self.session)))
    }

    fn reply(
        &mut self,
        sent: u32,
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(usize, Option<HandshakeEvent>), ProtocolError> {
        let (header, complete) = gather(&mut self.partial, input, REPLY_HEADER_BYTES);
        if !complete {
            return Ok((header, None));
        }
        let mut reader = Reader(&self.partial);
        let magic = reader.u64().unwrap_or(0);
        let mut word = || reader.u32().unwrap_or(0);
        let (got, kind, length) = (word(), word(), word() as usize);
        if magic != wire::OPTION_REPLY_MAGIC {
            return Err(ProtocolError::OptionReplyMagic(magic));
        }
        if got != sent {
            return Err(ProtocolError::ReplyToOther { sent, got });
        }
        if length > wire::MAXIMUM_OPTION_BYTES {
            return Err(ProtocolError::OptionReplyTooLong(sent));
        }
        let whole = REPLY_HEADER_BYTES + length;
        let (data, complete) = gather(&mut self.partial, &input[header..], whole);
        if !complete {
            return Ok((header + data, None));
        }
        let message = std::mem::take(&mut self.partial);
        let event = self.answered(sent, kind, &message[REPLY_HEADER_BYTES..], output)?;
        Ok((header + data, event))
    }

    fn answered(
        &mut self,
        sent: u32,
        kind: u32,
        data: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<Option<HandshakeEvent>, ProtocolError> {
        if kind & kind::ERROR_BIT != 0 {
            self.refused(sent, kind, data, output)?;
            return Ok(None);
        }
        if kind == kind::ACK {
            return self.acknowledged(sent, output);
        }
        let malformed = ProtocolError::OptionReply { option: sent, kind };
        self.facts += 1;
        let most = if sent == option::LIST {
            MAXIMUM_EXPORTS
        } else {
            MAXIMUM_FACTS
        };
        if self.facts > most {
            return Err(ProtocolError::OptionReplyTooLong(sent));
        }
        let mut reader = Reader(data);
        match (sent, kind) {
            (option::LIST, kind::SERVER) => {
                let name = reader.counted_string().ok_or(malformed)?;
                let description = String::from_utf8_lossy(reader.0).into_owned();
                self.listed.push((name.to_owned(), description));
            }
            (option::SET_META_CONTEXT, kind::META_CONTEXT) => {
                let id = reader.u32().ok_or_else(|| malformed.clone())?;
                let name = string(reader.0).ok_or(malformed)?.to_owned();
                self.session.contexts.push(SelectedContext { id, name });
            }
            (option::GO, kind::INFO) => self.fact(reader).ok_or(malformed)?,
            _ => return Err(malformed),
        }
        Ok(None)
    }

    fn acknowledged(
        &mut self,
        sent: u32,
        output: &mut Vec<u8>,
    ) -> Result<Option<HandshakeEvent>, ProtocolError> {
        match sent {
            option::STARTTLS => return Ok(Some(HandshakeEvent::StartTls)),
            option::STRUCTURED_REPLY => {
                self.session.structured = true;
                self.ask_contexts(output);
            }
            option::SET_META_CONTEXT => self.ask_last(output),
            option::LIST => {
                self.ask(option::ABORT, &[], output);
                self.phase = Phase::Over;
                let listed = std::mem::take(&mut self.listed);
                return Ok(Some(HandshakeEvent::Listed(listed)));
            }
            _ if self.has_export_fact => return Ok(Some(self.ready())),
            _ => {
                return Err(ProtocolError::OptionReply {
                    option: sent,
                    kind: kind::ACK,
                });
            }
        }
        Ok(None)
    }

    fn refused(
        &mut self,
        sent: u32,
        kind: u32,
        data: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        let optional = kind != kind::ERR_TLS_REQD && kind != kind::ERR_SHUTDOWN;
        match sent {
            option::STRUCTURED_REPLY | option::SET_META_CONTEXT if optional => {
                self.session.contexts.clear();
                self.ask_last(output);
            }
            option::GO if kind == kind::ERR_UNSUP => {
                let name = shortened(&self.wishes.export).to_owned();
                self.ask(option::EXPORT_NAME, name.as_bytes(), output);
                self.phase = Phase::ExportName;
            }
            _ => {
                return Err(ProtocolError::Refused {
                    option: sent,
                    reason: ProtocolError::reason(kind),
                    message: shortened(&String::from_utf8_lossy(data)).to_owned(),
                });
            }
        }
        Ok(())
    }

    /// `None` if it is malformed; facts that are not known are passed over.
    fn fact(&mut self, mut reader: Reader<'_>) -> Option<()> {
        match reader.u16()? {
            wire::info::EXPORT => {
                self.session.size_bytes = reader.u64()?;
                self.session.flags = TransmissionFlags(reader.u16()?);
                self.has_export_fact = true;
            }
            wire::info::DESCRIPTION => string(reader.0)?.clone_into(&mut self.session.description),
            wire::info::BLOCK_SIZE => {
                let sizes = BlockSizes {
                    minimum: reader.u32()?,
                    preferred: reader.u32()?,
                    maximum: reader.u32()?,
                };
                let sound = sizes.minimum.is_power_of_two()
                    && sizes.minimum <= 1 << 16
                    && sizes.preferred >= sizes.minimum
                    && sizes.maximum >= sizes.minimum;
                self.session.block_sizes = sound.then_some(sizes)?;
            }
            _ => {}
        }
        Some(())
    }
}

fn put_string(data: &mut Vec<u8>, text: &str) {
    let text = shortened(text);
    data.extend_from_slice(&(text.len() as u32).to_be_bytes());
    data.extend_from_slice(text.as_bytes());
}
