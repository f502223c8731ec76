//! The request log: the requests that ended last.

use std::collections::VecDeque;

use client::admin::requests::{KEPT, RequestJson};

use super::{editor::Editor, list::List, reading::Reading};

/// The most requests that are remembered.
pub const MOST: usize = 2 * KEPT;

/// The most bytes of a filter.
const MAX_FILTER: usize = 128;

/// The request log.
#[derive(Debug)]
pub struct Requests {
    requests: VecDeque<RequestJson>,
    /// Whether the server shows them.
    pub reading: Reading<()>,
    /// The filter: requests without this text are hidden.
    pub filter: Editor,
    /// The place in the shown requests.
    pub list: List,
    /// The number of the request that is shown in full.
    pub whole: Option<u64>,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            requests: VecDeque::new(),
            reading: Reading::Unknown,
            filter: Editor::new(MAX_FILTER),
            list: List::default(),
            whole: None,
        }
    }
}

impl Requests {
    /// Takes the requests that ended since the last poll, the newest first. Returns how many ended, which may
    /// be more than came; `None` for the first answer, since it is not known over which time its requests
    /// ended.
    pub fn take(&mut self, came: Vec<RequestJson>) -> Option<u64> {
        let first_look = self.reading.known().is_none();
        self.reading = Reading::Known(());
        let newest = came.first().map_or(0, |request| request.n);
        let known = self.requests.front().map_or(0, |request| request.n);
        // A server that was started again counts from the beginning.
        let restarted = !came.is_empty() && newest <= known;
        if restarted {
            self.requests.clear();
            self.list = List::default();
            self.whole = None;
        }
        let since = if restarted { 0 } else { known };
        self.keep(came);
        (!first_look).then(|| newest.saturating_sub(since))
    }

    /// The requests that pass the filter, the newest first.
    pub fn shown(&self) -> Vec<&RequestJson> {
        let wanted = self.filter.text().to_lowercase();
        self.requests.iter().filter(|request| has(request, &wanted)).collect()
    }

    /// The number of requests.
    pub fn count(&self) -> usize {
        self.requests.len()
    }

    /// The request that is shown in full.
    pub fn whole(&self) -> Option<&RequestJson> {
        let number = self.whole?;
        self.requests.iter().find(|request| request.n == number)
    }

    /// Shows the chosen request in full.
    pub fn open(&mut self) {
        self.whole = self.shown().get(self.list.at).map(|request| request.n);
    }

    fn keep(&mut self, came: Vec<RequestJson>) {
        let wanted = self.filter.text().to_lowercase();
        let above = came.iter().filter(|request| has(request, &wanted)).count();
        for request in came.into_iter().rev() {
            self.requests.push_front(request);
        }
        self.requests.truncate(MOST);
        // A selection of the newest follows the newest; any other stays on its request.
        if self.list.at > 0 {
            self.list.at += above;
            self.list.top += above;
        }
    }
}

fn has(request: &RequestJson, wanted: &str) -> bool {
    let status = request.status.map(|status| status.to_string());
    let texts = [
        Some(&request.id),
        Some(&request.key),
        request.scope.as_ref(),
        Some(&request.model),
        request.served_model.as_ref(),
        Some(&request.endpoint),
        request.provider.as_ref(),
        Some(&request.outcome),
        status.as_ref(),
    ];
    wanted.is_empty() || texts.iter().flatten().any(|text| text.to_lowercase().contains(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::fixture::request;

    fn numbers(requests: &Requests) -> Vec<u64> {
        requests.shown().iter().map(|request| request.n).collect()
    }

    #[test]
    fn new_ones_come_to_the_top_and_the_choice_stays() {
        let mut requests = Requests::default();
        assert_eq!(requests.take(vec![request(2), request(1)]), None);
        requests.list.at = 1;
        assert_eq!(requests.take(vec![request(4), request(3)]), Some(2));
        assert_eq!((numbers(&requests), requests.list.at), (vec![4, 3, 2, 1], 3));
    }

    #[test]
    fn those_that_were_missed_are_counted() {
        let mut requests = Requests::default();
        requests.take(vec![request(1)]);
        assert_eq!(requests.take(vec![request(901), request(900)]), Some(900));
        assert_eq!(requests.take(vec![]), Some(0));
    }

    #[test]
    fn a_server_that_started_again_counts_from_one() {
        let mut requests = Requests::default();
        requests.take(vec![request(7)]);
        requests.open();
        assert_eq!(requests.whole().map(|request| request.n), Some(7));
        assert_eq!(requests.take(vec![request(2), request(1)]), Some(2));
        assert_eq!((numbers(&requests), requests.whole), (vec![2, 1], None));
    }

    #[test]
    fn the_log_is_bounded() {
        let mut requests = Requests::default();
        for n in 1..=MOST as u64 + 9 {
            requests.take(vec![request(n)]);
        }
        assert_eq!((requests.count(), requests.shown()[0].n), (MOST, MOST as u64 + 9));
    }

    #[test]
    fn a_filter_looks_everywhere_whatever_the_case() {
        let mut requests = Requests::default();
        let other = RequestJson { model: "Qwen".to_owned(), ..request(2) };
        requests.take(vec![other, request(1)]);
        requests.filter.insert("qWEN");
        assert_eq!(numbers(&requests), [2]);
        requests.filter.clear();
        requests.filter.insert("nothing like it");
        assert_eq!(numbers(&requests), [] as [u64; 0]);
    }
}
