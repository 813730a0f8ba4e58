//! Names on the wire. Every state, event, guard and action has one spelling, the source document's, and it is
//! written once, beside the Rust name.

/// A closed set of names. Reading accepts either case, because clients of the five source documents use both.
pub trait Wire: Copy + Eq + Ord + std::fmt::Debug + 'static {
    const ALL: &'static [Self];

    /// Its place in `ALL`.
    fn ordinal(self) -> usize;

    fn name(self) -> &'static str;

    /// What it means: the doc comment beside the name, so that the printed pages and the code cannot differ.
    fn about(self) -> &'static str;

    fn read(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name().eq_ignore_ascii_case(name))
    }
}

/// Declares an enum whose variants carry their wire names, with serde and `Display` speaking those names.
#[macro_export]
macro_rules! wire_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[doc = $doc:literal])* $variant:ident = $wire:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $doc])* $variant),* }

        impl $crate::wire::Wire for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),*];

            fn ordinal(self) -> usize {
                self as usize
            }

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $wire),* }
            }

            fn about(self) -> &'static str {
                match self { $(Self::$variant => concat!("", $($doc),*).trim_ascii()),* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad($crate::wire::Wire::name(*self))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($crate::wire::Wire::name(*self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Reader;

                impl serde::de::Visitor<'_> for Reader {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("one of ", $("`", $wire, "` "),*))
                    }

                    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
                        <$name as $crate::wire::Wire>::read(name)
                            .ok_or_else(|| E::unknown_variant(name, &[$($wire),*]))
                    }
                }

                deserializer.deserialize_str(Reader)
            }
        }
    };
}
