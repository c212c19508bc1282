//! The set-up of a device, from the first message to a ring that works.

use super::{Device, MOST_ENTRIES, Reaction};
use crate::block::MOST_RANGE_SECTORS;
use crate::channel::{Channel, Message};
use crate::error::DeviceError;
use crate::memory::GuestMemory;
use crate::vhost_user::{self, FrontendMessage, FrontendRequest, RingAddresses, feature};
use std::os::fd::OwnedFd;
use virtio_queue::QueueT;

/// virtio-blk's feature bits (virtio 1.2, 5.2.3), and the two of virtio itself.
mod block_feature {
    pub(super) const SEGMENT_SIZE: u64 = 1 << 1;
    pub(super) const SEGMENTS: u64 = 1 << 2;
    pub(super) const BLOCK_SIZE: u64 = 1 << 6;
    pub(super) const FLUSH: u64 = 1 << 9;
    pub(super) const TOPOLOGY: u64 = 1 << 10;
    pub(super) const WRITE_CACHE: u64 = 1 << 11;
    pub(super) const DISCARD: u64 = 1 << 13;
    pub(super) const WRITE_ZEROES: u64 = 1 << 14;
    pub(super) const INDIRECT: u64 = 1 << 28;
    pub(super) const VERSION_1: u64 = 1 << 32;
}

/// The most bytes of a segment: a page. Which pages are neighbours in the guest's memory depends
/// on all that was ever allocated there, the size of programs among it. Larger segments would let
/// that decide how much of a stream fits in one command; of segments of this size a command always
/// has 254 pages.
const SEGMENT_BYTES: u32 = 4096;
/// The size of the configuration in bytes (`struct virtio_blk_config` up to `unused1`).
const CONFIGURATION_BYTES: usize = 60;
/// The offset of the write cache's switch in it.
const WRITE_BACK_AT: usize = 32;
/// The most bytes that a driver may ask for: more than any device's whole configuration.
const MOST_CONFIGURATION_BYTES: u32 = 1024;

impl Device {
    /// Does what a message asks.
    pub(crate) fn handle(&mut self, message: Message) -> Result<Reaction, DeviceError> {
        let decoded = FrontendMessage::decode(&message.bytes).map_err(DeviceError::Message)?;
        let code = decoded.code;
        let done = decoded
            .wants_acknowledgement
            .then(|| vhost_user::reply(code, 0));
        let number = |number| Ok(Reaction::Reply(vhost_user::reply(code, number)));
        match decoded.request {
            FrontendRequest::GetFeatures => return number(self.offered_features()),
            FrontendRequest::GetProtocolFeatures => return number(feature::ALL),
            FrontendRequest::GetConfig { offset, size } => {
                if size > MOST_CONFIGURATION_BYTES {
                    return Err(DeviceError::Features {
                        kind: "the configuration",
                        features: u64::from(size),
                    });
                }
                let bytes = self.configuration();
                let reply = vhost_user::config_reply(code, offset, size, &bytes);
                return Ok(Reaction::Reply(reply));
            }
            FrontendRequest::VringKick { index } => {
                self.check_queue(index)?;
                if !self.queue.ready() {
                    return Err(too_early("a kick", "the queue's enabling"));
                }
                return Ok(Reaction::Kick(done));
            }
            FrontendRequest::SetConfig { offset, bytes } => {
                let taken = self.set_configuration(offset, &bytes);
                let answer = vhost_user::reply(code, u64::from(!taken));
                return Ok(match done {
                    Some(_) => Reaction::Reply(answer),
                    None => Reaction::Done,
                });
            }
            request => self.set_up(request, message.descriptors)?,
        }
        Ok(done.map_or(Reaction::Done, Reaction::Reply))
    }

    fn set_up(
        &mut self,
        request: FrontendRequest,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), DeviceError> {
        match request {
            FrontendRequest::SetFeatures(features) => self.agree(features),
            FrontendRequest::SetProtocolFeatures(features) => {
                if features != feature::ALL {
                    return Err(DeviceError::Features {
                        kind: "the protocol",
                        features,
                    });
                }
                self.protocol_features = features;
                Ok(())
            }
            FrontendRequest::SetBackendRequestFd => self.take_interrupts(descriptors),
            FrontendRequest::SetMemoryTable(table) => {
                self.forget_ring();
                self.memory = None;
                let memory = GuestMemory::map(table, descriptors).map_err(DeviceError::Memory)?;
                self.memory = Some(memory);
                Ok(())
            }
            FrontendRequest::SetVringNum { index, num } => {
                self.check_queue(index)?;
                self.entries = u16::try_from(num)
                    .ok()
                    .filter(|&entries| entries <= MOST_ENTRIES)
                    .ok_or(DeviceError::Queue(virtio_queue::Error::InvalidSize))?;
                Ok(())
            }
            FrontendRequest::SetVringBase { index, base } => {
                self.check_queue(index)?;
                self.base = u16::try_from(base)
                    .map_err(|_| DeviceError::Queue(virtio_queue::Error::InvalidSize))?;
                Ok(())
            }
            FrontendRequest::SetVringAddress { index, addresses } => {
                self.check_queue(index)?;
                self.ring = Some(addresses);
                Ok(())
            }
            FrontendRequest::SetVringEnable { index, enable } => {
                self.check_queue(index)?;
                self.forget_ring();
                if enable { self.enable() } else { Ok(()) }
            }
            // The request of an owner needs nothing, and `handle` has answered the others.
            _ => Ok(()),
        }
    }

    #[expect(
        clippy::unused_self,
        reason = "how many queues there are is a device's own"
    )]
    fn check_queue(&self, index: u32) -> Result<(), DeviceError> {
        if index == 0 {
            Ok(())
        } else {
            Err(DeviceError::NoSuchQueue { index })
        }
    }

    fn offered_features(&self) -> u64 {
        use block_feature as bit;
        let when = |condition: bool, bits: u64| if condition { bits } else { 0 };
        bit::SEGMENT_SIZE
            | bit::SEGMENTS
            | bit::BLOCK_SIZE
            | bit::TOPOLOGY
            | bit::INDIRECT
            | bit::VERSION_1
            | feature::PROTOCOL_FEATURES
            | when(self.config.write_cache, bit::FLUSH | bit::WRITE_CACHE)
            | when(self.config.discard, bit::DISCARD)
            | when(self.config.write_zeroes, bit::WRITE_ZEROES)
    }

    fn agree(&mut self, features: u64) -> Result<(), DeviceError> {
        let offered = self.offered_features();
        if features & !offered != 0 || features & block_feature::VERSION_1 == 0 {
            return Err(DeviceError::Features {
                kind: "the device",
                features,
            });
        }
        self.features = features;
        Ok(())
    }

    /// Makes a `struct virtio_blk_config` (virtio 1.2, 5.2.4).
    fn configuration(&self) -> [u8; CONFIGURATION_BYTES] {
        let mut bytes = [0; CONFIGURATION_BYTES];
        let logical = self.config.logical_block.0;
        let exponent = (self.config.physical_block.0 / logical).trailing_zeros();
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &self.config.capacity().0.to_le_bytes());
        put(8, &SEGMENT_BYTES.to_le_bytes());
        // Segments may take all entries of the ring but the header's and the status's.
        put(12, &u32::from(MOST_ENTRIES - 2).to_le_bytes());
        put(20, &(logical as u32).to_le_bytes());
        put(24, &[exponent as u8]);
        put(26, &1_u16.to_le_bytes());
        put(WRITE_BACK_AT, &[u8::from(self.write_back)]);
        put(34, &1_u16.to_le_bytes());
        // A discard has one range of the most sectors, on a block's border.
        let alignment = (logical / 512) as u32;
        for (at, number) in [MOST_RANGE_SECTORS, 1, alignment, MOST_RANGE_SECTORS, 1]
            .iter()
            .enumerate()
        {
            put(36 + at * 4, &number.to_le_bytes());
        }
        bytes
    }

    /// Sets the write cache, which is all that the guest may switch.
    fn set_configuration(&mut self, offset: u32, bytes: &[u8]) -> bool {
        let cache = self.config.write_cache && offset as usize == WRITE_BACK_AT;
        match bytes {
            [value @ (0 | 1)] if cache => {
                self.write_back = *value == 1;
                true
            }
            _ => false,
        }
    }

    fn take_interrupts(&mut self, mut descriptors: Vec<OwnedFd>) -> Result<(), DeviceError> {
        let missing = too_early("the request socket's message", "its descriptor");
        let socket = descriptors.pop().filter(|_| descriptors.is_empty());
        let channel = Channel::new(socket.ok_or(missing)?, vhost_user::framing, self.patience);
        self.interrupts = Some(channel.map_err(DeviceError::Channel)?);
        Ok(())
    }

    fn enable(&mut self) -> Result<(), DeviceError> {
        let missing = |what| too_early("the queue's enabling", what);
        if self.features == 0 {
            return Err(missing("the device's features"));
        }
        if self.protocol_features == 0 {
            return Err(missing("the protocol's features"));
        }
        if self.interrupts.is_none() {
            return Err(missing("the request socket"));
        }
        let addresses = self.ring.ok_or(missing("the ring's addresses"))?;
        let memory = self.memory.as_ref().ok_or(missing("the memory table"))?;
        let RingAddresses {
            descriptors,
            used,
            available,
        } = addresses;
        let place = |address| {
            let guest = memory.guest_address(address).map(vm_memory::GuestAddress);
            guest.ok_or(DeviceError::QueueOutside)
        };
        let queue = &mut self.queue;
        queue
            .try_set_size(self.entries)
            .map_err(DeviceError::Queue)?;
        queue
            .try_set_desc_table_address(place(descriptors)?)
            .map_err(DeviceError::Queue)?;
        queue
            .try_set_used_ring_address(place(used)?)
            .map_err(DeviceError::Queue)?;
        queue
            .try_set_avail_ring_address(place(available)?)
            .map_err(DeviceError::Queue)?;
        queue.set_next_avail(self.base);
        queue.set_next_used(self.base);
        queue.set_ready(true);
        if !queue.is_valid(memory.shared()) {
            queue.set_ready(false);
            return Err(DeviceError::QueueOutside);
        }
        Ok(())
    }
}

fn too_early(request: &'static str, missing: &'static str) -> DeviceError {
    DeviceError::TooEarly { request, missing }
}
