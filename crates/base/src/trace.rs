//! Where a request is in a distributed trace, as W3C Trace Context says it, and which requests are traced.

use std::fmt::{self, Write};

/// The header that carries a [`TraceContext`].
pub const TRACEPARENT: &str = "traceparent";

/// The length of the header in version 00.
const LENGTH: usize = 55;

/// The id of a trace. Not all zero.
pub type TraceId = [u8; 16];

/// The id of a span. Not all zero.
pub type SpanId = [u8; 8];

/// A span of a trace, as it is told to the program that serves the next part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Whether it is recorded.
    pub sampled: bool,
}

/// The trace of one request at one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTrace {
    /// The request's own span.
    pub own: TraceContext,
    /// The span of the client, if it sent one.
    pub parent: Option<SpanId>,
}

impl TraceContext {
    /// Reads the header. Versions above 00 are read as far as they are like it.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let is_parted = bytes.len() >= LENGTH && [2, 35, 52].iter().all(|at| bytes[*at] == b'-');
        let field = |range: std::ops::Range<usize>| text.get(range).filter(|_| is_parted);
        let [version] = read_hex::<1>(field(0..2)?)?;
        let is_long = bytes.len() > LENGTH;
        if version == 0xff || (version == 0 && is_long) || (is_long && bytes[LENGTH] != b'-') {
            return None;
        }
        let (trace, span) = (read_hex(field(3..35)?)?, read_hex(field(36..52)?)?);
        let [flags] = read_hex::<1>(field(53..55)?)?;
        let is_valid = trace != [0; 16] && span != [0; 8];
        is_valid.then_some(Self { trace, span, sampled: flags & 1 == 1 })
    }

    /// The span of an attempt at this span's request, from 1. A part that counts the attempts knows it without being told.
    #[must_use]
    pub fn attempt(self, number: u32) -> Self {
        /// The golden ratio, as multiplicative hashes have it: the ids of few attempts differ, and look drawn.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let span = u64::from_be_bytes(self.span).wrapping_add(STEP.wrapping_mul(number.into()));
        Self { span: span.max(1).to_be_bytes(), ..self }
    }
}

/// As in the header.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        write_hex(f, &self.trace)?;
        f.write_char('-')?;
        write_hex(f, &self.span)?;
        f.write_str(if self.sampled { "-01" } else { "-00" })
    }
}

/// Which share of new traces is recorded. All servers with one ratio choose the same traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler(u64);

impl Sampler {
    /// Records this share, from 0 to 1.
    pub fn of_ratio(ratio: f64) -> Self {
        /// Ids are compared by 63 bits, as OpenTelemetry does.
        const WHOLE: f64 = (1_u64 << 63) as f64;
        // The product is between 0 and 2^63.
        Self((ratio.clamp(0.0, 1.0) * WHOLE) as u64)
    }

    /// Whether a new trace is recorded.
    pub fn takes(self, trace: &TraceId) -> bool {
        let [_, _, _, _, _, _, _, _, low @ ..] = *trace;
        u64::from_be_bytes(low) >> 1 < self.0
    }
}

fn read_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    // Upper case is not allowed.
    let is_hex = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    if text.len() != 2 * N || !text.bytes().all(is_hex) {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digits = std::str::from_utf8(digits).ok()?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(bytes)
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example of the specification.
    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_specification_is_read() {
        let context = TraceContext::parse(EXAMPLE).unwrap();
        assert_eq!((context.trace[0], context.span[7], context.sampled), (0x4b, 0xb7, true));
        assert_eq!(context.to_string(), EXAMPLE);
        let later = format!("cc{}-what-comes", &EXAMPLE[2..]);
        assert_eq!(TraceContext::parse(&later), Some(context), "a later version has more");
        assert!(!TraceContext::parse(&EXAMPLE.replace("-01", "-00")).unwrap().sampled);
        assert!(TraceContext::parse(&EXAMPLE.replace("-01", "-03")).unwrap().sampled);
    }

    #[test]
    fn what_is_no_context_is_none() {
        let zeros = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
        for bad in [
            "",
            "00",
            &EXAMPLE[..54],
            &format!("{EXAMPLE}-x"),
            &format!("ff{}", &EXAMPLE[2..]),
            &EXAMPLE.to_uppercase(),
            &EXAMPLE.replace("-01", "-0g"),
            &EXAMPLE.replace('-', "_"),
            &zeros,
            &format!("cc{}x", &EXAMPLE[2..]),
            &EXAMPLE.replace("4bf92f35", "4bf9é35"),
        ] {
            assert_eq!(TraceContext::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn attempts_have_spans_of_their_own_in_the_same_trace() {
        let context = TraceContext::parse(EXAMPLE).unwrap();
        let mut spans: Vec<SpanId> = (1..=64).map(|number| context.attempt(number).span).collect();
        spans.push(context.span);
        spans.sort_unstable();
        spans.dedup();
        assert_eq!(spans.len(), 65);
        assert_eq!(context.attempt(3).trace, context.trace);
    }

    #[test]
    fn a_share_of_traces_is_recorded() {
        let taken = |ratio: f64| {
            let sampler = Sampler::of_ratio(ratio);
            let trace = |number: u64| {
                let low = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                let mut trace = [7; 16];
                trace[8..].copy_from_slice(&low);
                trace
            };
            (0..10_000).filter(|number| sampler.takes(&trace(*number))).count()
        };
        assert_eq!((taken(0.0), taken(1.0), taken(7.0)), (0, 10_000, 10_000));
        assert!((900..1_100).contains(&taken(0.1)), "{}", taken(0.1));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(trace: [u8; 16], span: [u8; 8], sampled: bool) {
            let context = TraceContext { trace, span, sampled };
            let valid = trace != [0; 16] && span != [0; 8];
            prop_assert_eq!(TraceContext::parse(&context.to_string()), valid.then_some(context));
        }

        #[test]
        fn any_text_is_read_without_harm(text in "\\PC{0,70}") {
            let _ = TraceContext::parse(&text);
        }
    }
}
