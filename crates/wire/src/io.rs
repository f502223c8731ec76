//! Any byte stream, as one type: TCP, TLS, an HTTP upgrade, or a pipe in memory.

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

/// A stream that a link can run over.
pub trait IoStream: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> IoStream for T {}

/// A boxed byte stream.
pub type Io = Pin<Box<dyn IoStream>>;
