//! The macro that defines a list of messages, each with its name on the wire.

/// Defines an enum of messages, distinguished by their `type`, with its names and its reader. Errors
/// show the example to senders. A message is written with its first name, and read with any of its
/// names.
macro_rules! messages {
    (
        example $example:literal;
        $(#[$meta:meta])*
        pub enum $enum:ident: $kind:ident {
            $($(#[$doc:meta])* $name:literal $(| $other:literal)* => $variant:ident $(($body:ty))?,)+
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
                    $($name $(| $other)* => Some(Self::$variant),)+
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

        impl $crate::workspace::decode::Message for $enum {
            const EXAMPLE: &'static str = $example;

            fn read(
                kind: &str,
                text: &str,
            ) -> Option<Result<Self, $crate::workspace::decode::Wrong>> {
                Some(match kind {
                    $($name $(| $other)* => {
                        $crate::workspace::define::messages!(@read text $variant $($body)?)
                    })+
                    _ => return None,
                })
            }
        }

        impl<'de> serde::Deserialize<'de> for $enum {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::workspace::decode::deserialize(deserializer)
            }
        }
    };
    (@read $text:ident $variant:ident) => {
        $crate::workspace::decode::fields::<$crate::workspace::decode::Nothing>($text).map(|_| Self::$variant)
    };
    (@read $text:ident $variant:ident $body:ty) => {
        $crate::workspace::decode::fields::<$body>($text).map(Self::$variant)
    };
}

pub(in crate::workspace) use messages;
