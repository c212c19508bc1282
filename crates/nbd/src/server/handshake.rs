//! The server's side of the handshake.
//!
//! It consists of the greeting, the client flags, then options one at a time until one of them ends
//! the negotiation. Each option is gathered whole (up to a bound; longer ones are skipped and
//! refused) and answered by `options`.

use super::{
    agreed::{Agreed, Directory, HandshakeEvent, TlsPolicy},
    options,
};
use crate::{
    ProtocolError,
    strings::{Reader, gather},
    wire,
};

#[derive(Debug)]
enum Phase {
    ClientFlags,
    Option,
    Skip { option: u32, remaining: u32 },
    Over,
}

/// The state of a handshake.
#[derive(Debug)]
pub struct Handshake {
    tls: TlsPolicy,
    phase: Phase,
    partial: Vec<u8>,
    agreed: Agreed,
}

const OPTION_HEADER_BYTES: usize = 16;

impl Handshake {
    /// Begins a handshake and writes the greeting to `output`.
    #[must_use]
    pub fn new(tls: TlsPolicy, output: &mut Vec<u8>) -> Self {
        output.extend_from_slice(&wire::GREETING_MAGIC.to_be_bytes());
        output.extend_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
        let flags = wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES;
        output.extend_from_slice(&flags.to_be_bytes());
        Self {
            tls,
            phase: Phase::ClientFlags,
            partial: Vec::new(),
            agreed: Agreed::default(),
        }
    }

    /// Tells the handshake that the connection is encrypted from now on. Earlier agreements are
    /// forgotten, since an attacker on the network may have made them.
    pub fn secured(&mut self) {
        self.agreed = Agreed {
            secured: true,
            fixed: self.agreed.fixed,
            no_zeroes: self.agreed.no_zeroes,
            ..Agreed::default()
        };
    }

    /// Takes bytes, at most one option. Returns the number of bytes taken and the event that they
    /// caused, if any; call it again while bytes are left and no event came. Answers are written to
    /// `output`, which should be sent before more is read.
    ///
    /// # Errors
    ///
    /// The client broke the protocol in a way that has no reply; send the bytes in
    /// `output` and close.
    pub fn receive(
        &mut self,
        input: &[u8],
        directory: &dyn Directory,
        output: &mut Vec<u8>,
    ) -> Result<(usize, Option<HandshakeEvent>), ProtocolError> {
        match self.phase {
            Phase::ClientFlags => {
                let (taken, complete) = gather(&mut self.partial, input, 4);
                if complete {
                    self.client_flags()?;
                }
                Ok((taken, None))
            }
            Phase::Option => self.option(input, directory, output),
            Phase::Skip { option, remaining } => {
                let taken = input.len().min(remaining as usize);
                // `taken` is at most `remaining`, which is a u32.
                let remaining = remaining - taken as u32;
                self.phase = Phase::Skip { option, remaining };
                if remaining == 0 {
                    self.phase = Phase::Option;
                    self.refuse_skipped(option, output)?;
                }
                Ok((taken, None))
            }
            Phase::Over => Ok((0, None)),
        }
    }

    fn client_flags(&mut self) -> Result<(), ProtocolError> {
        let flags = Reader(&self.partial).u32().unwrap_or(0);
        let known = u32::from(wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES);
        if flags & !known != 0 {
            return Err(ProtocolError::ClientFlags(flags));
        }
        self.agreed.fixed = flags & u32::from(wire::FLAG_FIXED_NEWSTYLE) != 0;
        self.agreed.no_zeroes = flags & u32::from(wire::FLAG_NO_ZEROES) != 0;
        self.partial.clear();
        self.phase = Phase::Option;
        Ok(())
    }

    fn refuse_skipped(&self, option: u32, output: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if option == wire::option::EXPORT_NAME {
            return Err(ProtocolError::BadString);
        }
        let words = "the option is too long";
        options::reply(output, option, wire::reply::ERR_TOO_BIG, words.as_bytes());
        Ok(())
    }

    fn option(
        &mut self,
        input: &[u8],
        directory: &dyn Directory,
        output: &mut Vec<u8>,
    ) -> Result<(usize, Option<HandshakeEvent>), ProtocolError> {
        let (header, complete) = gather(&mut self.partial, input, OPTION_HEADER_BYTES);
        if !complete {
            return Ok((header, None));
        }
        let mut reader = Reader(&self.partial);
        let (Some(magic), Some(option), Some(length)) = (reader.u64(), reader.u32(), reader.u32())
        else {
            return Ok((header, None));
        };
        if magic != wire::OPTION_MAGIC {
            return Err(ProtocolError::OptionMagic(magic));
        }
        if !self.agreed.fixed && option != wire::option::EXPORT_NAME {
            return Err(ProtocolError::OptionNotAllowed(option));
        }
        if length as usize > wire::MAXIMUM_OPTION_BYTES {
            self.partial.clear();
            self.phase = Phase::Skip {
                option,
                remaining: length,
            };
            return Ok((header, None));
        }
        let whole = OPTION_HEADER_BYTES + length as usize;
        let (data, complete) = gather(&mut self.partial, &input[header..], whole);
        if !complete {
            return Ok((header + data, None));
        }
        let event = options::answer(
            option,
            &self.partial[OPTION_HEADER_BYTES..],
            (self.tls, &mut self.agreed),
            directory,
            output,
        )?;
        self.partial.clear();
        if matches!(
            event,
            Some(HandshakeEvent::Aborted | HandshakeEvent::Ready(_))
        ) {
            self.phase = Phase::Over;
        }
        Ok((header + data, event))
    }
}
