//! Undoes the content coding of an answer that is translated. Providers are asked to use none, but some compress
//! every answer.

use std::io::Write;

use bytes::Bytes;
use flate2::write::{GzDecoder, ZlibDecoder};
use http::{HeaderMap, header};
use scheduler::{AnswerMap, Head, Unreadable};

/// The most bytes that one chunk of an answer may become.
const MAX_DECODED: usize = 8 * 1024 * 1024;

/// How many bytes are decoded at once. They become at most about a thousand times as many.
const PIECE: usize = 1024;

/// Undoes an answer's coding, and gives the answer to `map`.
pub(super) struct Decoder<M> {
    map: M,
    coding: Coding,
}

enum Coding {
    None,
    Gzip(Box<GzDecoder<Vec<u8>>>),
    Deflate(Box<ZlibDecoder<Vec<u8>>>),
    /// A coding that is not known here, or several.
    Other(String),
}

impl<M> Decoder<M> {
    pub(super) fn new(map: M) -> Self {
        Self { map, coding: Coding::None }
    }
}

impl<M: AnswerMap> AnswerMap for Decoder<M> {
    fn head(&mut self, head: Head) -> Head {
        self.coding = Coding::of(&head.headers);
        self.map.head(head)
    }

    fn gathers(&self) -> bool {
        self.map.gathers()
    }

    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable> {
        let chunk = self.coding.decode(chunk)?;
        self.map.chunk(chunk)
    }

    fn is_complete(&self) -> bool {
        self.map.is_complete()
    }

    fn end(&mut self) -> Result<Bytes, Unreadable> {
        let rest = self.coding.end()?;
        let mut last = Vec::new();
        if !rest.is_empty() {
            last.extend_from_slice(&self.map.chunk(rest)?);
        }
        if !self.map.is_complete() {
            last.extend_from_slice(&self.map.end()?);
        }
        Ok(last.into())
    }

    fn broken_off(&mut self) -> Bytes {
        self.map.broken_off()
    }
}

impl Coding {
    fn of(headers: &HeaderMap) -> Self {
        let named = headers.get_all(header::CONTENT_ENCODING).iter();
        let named = named.filter_map(|value| value.to_str().ok()).flat_map(|list| list.split(','));
        let names: Vec<String> = named
            .map(|name| name.trim().to_ascii_lowercase())
            .filter(|name| !matches!(name.as_str(), "" | "identity"))
            .collect();
        match names.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] => Self::None,
            ["gzip" | "x-gzip"] => Self::Gzip(Box::new(GzDecoder::new(Vec::new()))),
            ["deflate"] => Self::Deflate(Box::new(ZlibDecoder::new(Vec::new()))),
            _ => Self::Other(names.join(", ")),
        }
    }

    fn decode(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable> {
        match self {
            Self::None => Ok(chunk),
            Self::Gzip(decoder) => {
                write(&chunk, &mut **decoder, |it| it.get_ref().len())?;
                Ok(std::mem::take(decoder.get_mut()).into())
            }
            Self::Deflate(decoder) => {
                write(&chunk, &mut **decoder, |it| it.get_ref().len())?;
                Ok(std::mem::take(decoder.get_mut()).into())
            }
            Self::Other(name) => {
                let shown = protocol::json::clip(name, 64);
                let words = format!("the model server compressed its answer as {shown}, unasked");
                Err(broken(words))
            }
        }
    }

    fn end(&mut self) -> Result<Bytes, Unreadable> {
        match self {
            Self::None | Self::Other(_) => Ok(Bytes::new()),
            Self::Gzip(decoder) => {
                decoder.try_finish().map_err(|error| unreadable(&error))?;
                Ok(std::mem::take(decoder.get_mut()).into())
            }
            Self::Deflate(decoder) => {
                decoder.try_finish().map_err(|error| unreadable(&error))?;
                Ok(std::mem::take(decoder.get_mut()).into())
            }
        }
    }
}

fn write<D: Write>(
    chunk: &[u8],
    decoder: &mut D,
    decoded: impl Fn(&D) -> usize,
) -> Result<(), Unreadable> {
    for piece in chunk.chunks(PIECE) {
        decoder
            .write_all(piece)
            .and_then(|()| decoder.flush())
            .map_err(|error| unreadable(&error))?;
        if decoded(decoder) > MAX_DECODED {
            return Err(broken("the model server's compressed answer is too long".to_owned()));
        }
    }
    Ok(())
}

fn unreadable(error: &std::io::Error) -> Unreadable {
    broken(format!("the model server's compressed answer cannot be read: {error}"))
}

fn broken(why: String) -> Unreadable {
    Unreadable { before: Bytes::new(), why }
}

#[cfg(test)]
mod tests {
    use flate2::{
        Compression,
        write::{GzEncoder, ZlibEncoder},
    };
    use http::{HeaderValue, StatusCode};

    use super::*;

    /// Passes everything.
    struct Same;

    impl AnswerMap for Same {
        fn head(&mut self, head: Head) -> Head {
            head
        }

        fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable> {
            Ok(chunk)
        }

        fn end(&mut self) -> Result<Bytes, Unreadable> {
            Ok(Bytes::new())
        }
    }

    fn read(coding: &'static str, pieces: &[&[u8]]) -> Result<Vec<u8>, String> {
        let coding = (header::CONTENT_ENCODING, HeaderValue::from_static(coding));
        let headers = HeaderMap::from_iter([coding]);
        let mut map = Decoder::new(Same);
        map.head(Head { status: StatusCode::OK, headers });
        let mut all = Vec::new();
        for piece in pieces {
            let chunk = map.chunk(Bytes::copy_from_slice(piece));
            all.extend_from_slice(&chunk.map_err(|broken| broken.why)?);
        }
        all.extend_from_slice(&map.end().map_err(|broken| broken.why)?);
        Ok(all)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn codings_are_undone_wherever_they_are_cut() {
        let text = b"data: {}\n\n".repeat(500);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text).unwrap();
        let (zlib, gzip) = (zlib.finish().unwrap(), gzip(&text));
        for at in [0, 1, 11, gzip.len() - 1] {
            let (first, rest) = gzip.split_at(at);
            assert_eq!(read("GZIP", &[first, rest]).as_ref(), Ok(&text), "{at}");
        }
        assert_eq!(read("deflate", &[&zlib]).as_ref(), Ok(&text));
        for none in ["", "identity", "Identity, "] {
            assert_eq!(read(none, &[&text]).as_ref(), Ok(&text));
        }
        assert!(read("br", &[&text]).unwrap_err().contains("as br, unasked"));
        assert!(read("gzip", &[b"{}"]).unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn what_a_chunk_becomes_has_a_bound() {
        let bomb = gzip(&vec![0; MAX_DECODED + 1]);
        assert!(read("gzip", &[&bomb]).unwrap_err().contains("too long"));
        assert!(read("gzip", &[&gzip(&vec![0; MAX_DECODED])]).is_ok());
    }
}
