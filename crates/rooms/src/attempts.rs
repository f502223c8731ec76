//! Who tries too often.
