//! Codes that people can say and type.
