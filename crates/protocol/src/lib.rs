//! Messages and framings of every protocol, pure: bytes in, values out, and back.
