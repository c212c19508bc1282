//! Enumerations whose variants have one word each, for files and for programs.

/// An enumeration that a file has by the words given here, and whose `name` and text they are.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$own:meta])* $variant:ident = $word:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
        pub enum $name {
            $($(#[$own])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Its word, in files and for the system's programs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}
pub(crate) use named;
