//! Which requests are traced: those whose client traces them, and a share of the others.

use base::trace::{RequestTrace, Sampler, TRACEPARENT, TraceContext};
use http::HeaderMap;
use rand::RngExt;

/// The trace of a request with these headers. Without a sampler nothing is traced, and headers pass as they came.
pub(crate) fn of(sampler: Option<Sampler>, headers: &HeaderMap) -> Option<RequestTrace> {
    let sampler = sampler?;
    // Zero is drawn once in 2^64 times.
    let span = rand::rng().random::<u64>().max(1).to_be_bytes();
    match given(headers) {
        // The client decides for the whole trace.
        Some(client) => {
            let own = TraceContext { span, ..client };
            client.sampled.then_some(RequestTrace { own, parent: Some(client.span) })
        }
        None => {
            let trace = rand::rng().random::<u128>().max(1).to_be_bytes();
            let own = TraceContext { trace, span, sampled: true };
            sampler.takes(&trace).then_some(RequestTrace { own, parent: None })
        }
    }
}

/// The context that a client sent. Two of them count as no context.
fn given(headers: &HeaderMap) -> Option<TraceContext> {
    let mut all = headers.get_all(TRACEPARENT).iter();
    let one = all.next().filter(|_| all.next().is_none())?;
    TraceContext::parse(one.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(all: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in all {
            headers.append(TRACEPARENT, value.parse().unwrap());
        }
        headers
    }

    fn traced(ratio: f64, all: &[&str]) -> Option<RequestTrace> {
        of(Some(Sampler::of_ratio(ratio)), &headers(all))
    }

    #[test]
    fn a_clients_trace_goes_on_as_it_decided() {
        let client = TraceContext::parse(PARENT).unwrap();
        let found = traced(0.0, &[PARENT]).unwrap();
        assert_eq!((found.own.trace, found.parent), (client.trace, Some(client.span)));
        assert_ne!(found.own.span, client.span);
        assert_eq!(traced(1.0, &[&PARENT.replace("-01", "-00")]), None);
    }

    #[test]
    fn other_requests_begin_a_trace_if_they_are_of_the_share() {
        for none in [&[][..], &["nonsense"], &[PARENT, PARENT]] {
            let begun = traced(1.0, none).unwrap();
            assert_eq!(begun.parent, None);
            assert!(begun.own.sampled && begun.own.trace != [0; 16]);
            assert_eq!(traced(0.0, none), None);
        }
        assert_eq!(of(None, &headers(&[PARENT])), None, "nothing is traced here");
    }
}
