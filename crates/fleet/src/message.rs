//! The messages between lender and borrower.
//!
//! All numbers are absolute, and a message that was lost, came twice, late or out of order does no harm:
//! `number` grows with each message of a borrower, `serial` with each message of a lender, and each end
//! ignores what is not newer than what it has.

use base::ProviderId;

/// The length of an encoded message, in bytes.
const LENGTH: usize = 33;

/// One message about the slots of one provider of the lender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// Of a borrower: the number of slots that it wants. Sent again and again while it holds or wants any.
    Want {
        /// The lender's provider.
        provider: ProviderId,
        /// The number of the message.
        number: u64,
        /// The last serial that came from the lender; 0 for none.
        serial: u64,
        /// How many it wants in all.
        slots: u32,
        /// How many it may be using until another grant comes.
        keeps: u32,
    },
    /// Of a lender: these slots are lent, for a while from when the want was sent.
    Grant {
        /// The lender's provider.
        provider: ProviderId,
        /// The number of the want that it answers.
        number: u64,
        /// The serial of the message.
        serial: u64,
        /// How many the borrower may use in all.
        slots: u32,
    },
    /// Of a lender: give back all but this number, those in use as soon as their jobs end. The lease of the
    /// others counts from when the want was sent.
    Recall {
        /// The lender's provider.
        provider: ProviderId,
        /// The number of the want that came last.
        number: u64,
        /// The serial of the message.
        serial: u64,
        /// How many the borrower may go on using.
        slots: u32,
    },
    /// Of a borrower: it uses no more than this number from now on, until another grant comes.
    Return {
        /// The lender's provider.
        provider: ProviderId,
        /// The number of the message.
        number: u64,
        /// The last serial that came from the lender; 0 for none.
        serial: u64,
        /// How many it wants in all.
        slots: u32,
        /// How many it may be using.
        keeps: u32,
    },
}

/// Bytes that are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no message between lender and borrower")]
pub struct BadMessage;

impl Message {
    /// The provider that it is about.
    pub fn provider(&self) -> ProviderId {
        match *self {
            Self::Want { provider, .. }
            | Self::Grant { provider, .. }
            | Self::Recall { provider, .. }
            | Self::Return { provider, .. } => provider,
        }
    }

    /// The message as bytes.
    pub fn encode(&self) -> [u8; LENGTH] {
        let (kind, provider, number, serial, slots, keeps) = match *self {
            Self::Want { provider, number, serial, slots, keeps } => {
                (1, provider, number, serial, slots, keeps)
            }
            Self::Grant { provider, number, serial, slots } => {
                (2, provider, number, serial, slots, 0)
            }
            Self::Recall { provider, number, serial, slots } => {
                (3, provider, number, serial, slots, 0)
            }
            Self::Return { provider, number, serial, slots, keeps } => {
                (4, provider, number, serial, slots, keeps)
            }
        };
        let mut bytes = [kind; LENGTH];
        bytes[1..9].copy_from_slice(&provider.bits().to_be_bytes());
        bytes[9..17].copy_from_slice(&number.to_be_bytes());
        bytes[17..25].copy_from_slice(&serial.to_be_bytes());
        bytes[25..29].copy_from_slice(&slots.to_be_bytes());
        bytes[29..33].copy_from_slice(&keeps.to_be_bytes());
        bytes
    }

    /// Reads a message.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadMessage> {
        let bytes: &[u8; LENGTH] = bytes.try_into().map_err(|_| BadMessage)?;
        let long = |at: usize| -> [u8; 8] { std::array::from_fn(|index| bytes[at + index]) };
        let short = |at: usize| -> [u8; 4] { std::array::from_fn(|index| bytes[at + index]) };
        let provider = ProviderId::from_random(u64::from_be_bytes(long(1)));
        let (number, serial) = (u64::from_be_bytes(long(9)), u64::from_be_bytes(long(17)));
        let (slots, keeps) = (u32::from_be_bytes(short(25)), u32::from_be_bytes(short(29)));
        match (bytes[0], keeps) {
            (1, _) => Ok(Self::Want { provider, number, serial, slots, keeps }),
            (2, 0) => Ok(Self::Grant { provider, number, serial, slots }),
            (3, 0) => Ok(Self::Recall { provider, number, serial, slots }),
            (4, _) => Ok(Self::Return { provider, number, serial, slots, keeps }),
            _ => Err(BadMessage),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn messages() -> impl Strategy<Value = Message> {
        let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), 0..4);
        numbers.prop_map(|(provider, number, serial, slots, keeps, kind)| {
            let provider = ProviderId::from_random(provider);
            match kind {
                0 => Message::Want { provider, number, serial, slots, keeps },
                1 => Message::Grant { provider, number, serial, slots },
                2 => Message::Recall { provider, number, serial, slots },
                _ => Message::Return { provider, number, serial, slots, keeps },
            }
        })
    }

    proptest! {
        #[test]
        fn a_message_is_read_as_it_was_written(message in messages()) {
            prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
        }

        #[test]
        fn what_is_read_is_written_the_same(bytes in proptest::collection::vec(any::<u8>(), 30..36)) {
            if let Ok(message) = Message::decode(&bytes) {
                prop_assert_eq!(&message.encode()[..], &bytes[..]);
            }
        }
    }
}
