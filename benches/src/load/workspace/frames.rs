//! Frames of a WebSocket, as a client reads and writes them.

use anyhow::{Result, ensure};

pub(super) const TEXT: u8 = 1;
pub(super) const BINARY: u8 = 2;
pub(super) const CLOSE: u8 = 8;
pub(super) const PING: u8 = 9;
pub(super) const PONG: u8 = 10;

/// The head of a frame of output, before its text: one byte, the session, the number.
pub(super) const OUTPUT: usize = 25;

/// Where the number stands in it.
const SEQ: usize = 17;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) opcode: u8,
    pub(super) length: usize,
    pub(super) payload: usize,
}

/// The header at the beginning of these bytes; `None` when they are too few.
pub(super) fn header(bytes: &[u8]) -> Result<Option<Header>> {
    let &[first, second, ..] = bytes else { return Ok(None) };
    ensure!(first & 0xf0 == 0x80, "a frame in pieces, or compressed: {first:#04x}");
    ensure!(second & 0x80 == 0, "a masked frame of a server");
    let more = match second {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let Some(long) = bytes.get(2..2 + more) else { return Ok(None) };
    let long = long.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    let payload = if more == 0 { usize::from(second) } else { usize::try_from(long)? };
    Ok(Some(Header { opcode: first & 0x0f, length: 2 + more, payload }))
}

/// A frame of a client. Its mask is zero, which changes nothing.
pub(super) fn masked(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | opcode];
    match payload.len() {
        short @ ..126 => frame.push(0x80 | short as u8),
        length @ 126..=0xffff => {
            frame.push(0x80 | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(0x80 | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// The number of a frame of output, given its beginning.
pub(super) fn seq(output: &[u8]) -> Result<u64> {
    ensure!(output.first() == Some(&1), "a binary frame that is no output");
    let number = output.get(SEQ..OUTPUT).unwrap_or_default();
    ensure!(number.len() == OUTPUT - SEQ, "a frame of output without a number");
    Ok(number.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_every_length_are_read_once_they_are_whole() {
        for payload in [0, 1, 125, 126, 127, 65_535, 65_536, 1 << 20] {
            let mut frame = masked(BINARY, &vec![7; payload]);
            // Of a server, without a mask.
            frame[1] &= 0x7f;
            let length = frame.len() - payload - 4;
            for end in 0..length {
                assert_eq!(header(&frame[..end]).unwrap(), None, "{end} bytes of {payload}");
            }
            let read = header(&frame).unwrap().unwrap();
            assert_eq!(read, Header { opcode: BINARY, length, payload });
        }
    }

    #[test]
    fn frames_that_no_server_sends_are_refused() {
        for frame in [[0x02, 0], [0xc2, 0], [0x82, 0x80]] {
            assert!(header(&frame).is_err(), "{frame:?}");
        }
    }

    #[test]
    fn output_has_a_number() {
        let mut output = vec![1; 17];
        output.extend(258_u64.to_be_bytes());
        assert_eq!(seq(&output).unwrap(), 258);
        assert!(seq(&output[..24]).is_err());
        assert!(seq(b"\x02").is_err());
    }
}
