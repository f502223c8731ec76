//! Bytes as stock peers write them.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A frame that a test may get; stock peers have no bound.
const MAX_FRAME: usize = 64 * 1024 * 1024;

/// Now, as the mesh writes dates: seconds since 2001.
pub(super) fn apple_now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    now.as_secs_f64() - 978_307_200.0
}

/// A UUID that is used once, in lower case.
pub(super) fn uuid() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0xabc0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    format!("{process:08x}-fa4e-4abc-8def-{number:012x}")
}

pub(super) fn wrapped(kind: &str, body: &Value) -> Value {
    json!({ kind: { "_0": body } })
}

/// JSON as Swift writes it.
pub(super) fn swift(message: &Value) -> String {
    message.to_string().replace('/', "\\/")
}

/// The kind and the body of a message in either form; `None` for anything else.
pub(super) fn either(message: &Value) -> Option<(String, Value)> {
    let (kind, body) = message.as_object()?.iter().next()?;
    let body = body.get("_0").unwrap_or(body);
    Some((kind.clone(), body.clone()))
}

pub(super) async fn read_frame(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = from.read_u32().await? as usize;
    assert!(length <= MAX_FRAME, "a frame of {length} bytes");
    let mut frame = vec![0; length];
    from.read_exact(&mut frame).await?;
    Ok(frame)
}

pub(super) async fn write_frame(
    to: &mut (impl AsyncWrite + Unpin),
    frame: &[u8],
) -> io::Result<()> {
    let length = u32::try_from(frame.len()).expect("a short frame");
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(frame);
    to.write_all(&bytes).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swift_escapes_slashes() {
        assert_eq!(swift(&json!({"a": "b/c"})), r#"{"a":"b\/c"}"#);
    }
}
