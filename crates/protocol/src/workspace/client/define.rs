//! How the two lists of messages are written down: each with its name on the wire.

/// Defines an enum of messages, distinguished by their `type`, with its names and its reader.
macro_rules! messages {
    (
        $(#[$meta:meta])*
        pub enum $enum:ident: $kind:ident {
            $($(#[$doc:meta])* $name:literal => $variant:ident $(($body:ty))?,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[serde(tag = "type")]
        pub enum $enum {
            $($(#[$doc])* #[serde(rename = $name)] $variant $(($body))?,)+
        }

        /// The `type` of a message, without its fields.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $kind {
            $($(#[$doc])* $variant,)+
        }

        impl $kind {
            /// Every `type`.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Every `type` as JSON has it.
            pub const NAMES: &[&str] = &[$($name),+];

            /// The `type` as JSON has it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The kind of messages with this `type`.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl $enum {
            /// The kind of this message.
            pub const fn kind(&self) -> $kind {
                match self {
                    $(Self::$variant { .. } => $kind::$variant,)+
                }
            }

            /// The message's `type`.
            pub const fn name(&self) -> &'static str {
                self.kind().name()
            }

            /// The message as JSON.
            pub fn encode(&self) -> String {
                crate::json::write(self)
            }
        }

        impl super::decode::Message for $enum {
            fn read(kind: &str, text: &str) -> Option<Result<Self, super::decode::Wrong>> {
                Some(match kind {
                    $($name => super::define::messages!(@read text $variant $($body)?),)+
                    _ => return None,
                })
            }
        }

        impl<'de> serde::Deserialize<'de> for $enum {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                super::decode::deserialize(deserializer)
            }
        }
    };
    (@read $text:ident $variant:ident) => {
        super::decode::fields::<super::decode::Nothing>($text).map(|_| Self::$variant)
    };
    (@read $text:ident $variant:ident $body:ty) => {
        super::decode::fields::<$body>($text).map(Self::$variant)
    };
}

pub(super) use messages;
