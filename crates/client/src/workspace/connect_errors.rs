//! Why none of the servers of a workspace could be used.

use super::address::Addresses;
use crate::error::ClientError;

/// An error for each server that was tried, in that order.
#[derive(Debug)]
pub(super) struct ConnectErrors {
    servers: String,
    errors: Vec<ClientError>,
}

impl ConnectErrors {
    /// The errors of these servers, at least one.
    pub(super) fn new(addresses: &Addresses, errors: Vec<ClientError>) -> Self {
        let servers: Vec<&str> = addresses.iter().map(|address| address.shown()).collect();
        Self { servers: servers.join(", "), errors }
    }

    /// The error for a client that has not been connected yet. A refusal is preferred, because it shows a
    /// mistake in what the client was given.
    pub(super) fn for_first_connection(self) -> ClientError {
        self.prefer(|error| !error.may_pass())
    }

    /// The error for a client that was connected before. An error that may pass is preferred: as long as one
    /// server may come back, the refusal of another does not end the attempts.
    pub(super) fn for_next_connection(self) -> ClientError {
        self.prefer(ClientError::may_pass)
    }

    fn prefer(mut self, is_preferred: impl Fn(&ClientError) -> bool) -> ClientError {
        let at = self.errors.iter().position(is_preferred).unwrap_or(0);
        let is_alone = self.errors.len() < 2;
        match (self.errors.get(at), is_alone) {
            (Some(error), false) if error.may_pass() => self.of_all(),
            (Some(_), _) => self.errors.swap_remove(at),
            (None, _) => self.of_all(),
        }
    }

    fn of_all(self) -> ClientError {
        let reasons: Vec<String> = self.errors.into_iter().map(reason).collect();
        ClientError::Unreachable { url: self.servers, reason: reasons.join("; ") }
    }
}

fn reason(error: ClientError) -> String {
    match error {
        ClientError::Unreachable { reason, .. } => reason,
        ClientError::Late { after, .. } => format!("no answer within {} s", after.as_secs()),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Address;

    fn errors(errors: Vec<ClientError>) -> ConnectErrors {
        let [a, b] = ["http://a", "http://b"].map(|it| Address::new(it, None).unwrap());
        ConnectErrors::new(&Addresses::new(a, [b]), errors)
    }

    #[test]
    fn a_refusal_counts_first_at_the_beginning_and_last_later() {
        let gone = || ClientError::Unreachable { url: "a".to_owned(), reason: "gone".to_owned() };
        let no = || ClientError::NotAdmitted { url: "b".to_owned(), words: "no".to_owned() };
        assert_eq!(errors(vec![gone(), no()]).for_first_connection(), no());
        assert_eq!(errors(vec![no()]).for_next_connection(), no());
        assert_eq!(errors(vec![gone()]).for_first_connection(), gone(), "one stays as it is");
        let next = errors(vec![no(), gone()]).for_next_connection();
        assert!(next.is_unreachable(), "{next}");
        let all = errors(vec![gone(), gone()]).for_first_connection().to_string();
        assert!(all.contains("http://a, http://b: gone; gone"), "{all}");
    }
}
