//! The NATS server over which several servers act as one.

use daemon::nats::{Examination, ExaminedNats};

use super::finding::Finding;

const CHECK: &str = "nats";

/// A message that takes longer makes requests at other servers' workers slow.
const SLOW_MS: u128 = 20;

pub(super) fn server(examined: &Result<ExaminedNats, String>) -> Finding {
    let examined = match examined {
        Ok(examined) => examined,
        Err(error) => return Finding::fault(CHECK, error.clone(), "look at --cluster"),
    };
    match &examined.found {
        Ok(found) => of_found(examined, found),
        Err(error) => Finding::fault(
            CHECK,
            format!("{}: {error}", examined.shown),
            "is it up, are its address, user and password right, and is its certificate trusted here?",
        ),
    }
}

fn of_found(examined: &ExaminedNats, found: &Examination) -> Finding {
    let (shown, version) = (&examined.shown, &found.version);
    let took = found.round_trip.as_millis();
    if !found.is_new_enough {
        let what = format!("{shown} is NATS {version}");
        return Finding::fault(CHECK, what, "Warren needs version 2.10 or newer");
    }
    if !found.has_jetstream {
        let what = format!("{shown} has no JetStream");
        return Finding::fault(CHECK, what, "start it with -js, or turn it on for this account");
    }
    if examined.is_exposed {
        let what = format!("{shown} is on another machine, and the connection is not encrypted");
        return Finding::note(CHECK, what, "name it with tls://, unless you trust the network");
    }
    if took >= SLOW_MS {
        let what = format!("a message to {shown} and back takes {took} ms");
        return Finding::note(CHECK, what, "have NATS near the servers");
    }
    Finding::ok(CHECK, format!("{shown}: NATS {version} with JetStream"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::commands::doctor::finding::State;

    fn found(change: fn(&mut ExaminedNats, &mut Examination)) -> (State, String) {
        let mut found = Examination {
            version: "2.10.27".to_owned(),
            is_new_enough: true,
            has_jetstream: true,
            round_trip: Duration::from_millis(1),
        };
        let mut examined = ExaminedNats {
            shown: "nats://box:4222".to_owned(),
            is_exposed: false,
            found: Err(String::new()),
        };
        change(&mut examined, &mut found);
        examined.found = Ok(found);
        let finding = server(&Ok(examined));
        (finding.state, finding.readable())
    }

    #[test]
    fn what_keeps_servers_apart_is_a_fault_and_what_is_unwise_a_note() {
        let (state, text) = found(|_, _| {});
        assert!(state == State::Ok && text.contains("NATS 2.10.27 with JetStream"), "{text}");
        let (state, text) = found(|_, found| found.is_new_enough = false);
        assert!(state == State::Fault && text.contains("2.10 or newer"), "{text}");
        let (state, text) = found(|_, found| found.has_jetstream = false);
        assert!(state == State::Fault && text.contains("-js"), "{text}");
        let (state, text) = found(|examined, _| examined.is_exposed = true);
        assert!(state == State::Note && text.contains("tls://"), "{text}");
        let (state, text) = found(|_, found| found.round_trip = Duration::from_millis(50));
        assert!(state == State::Note && text.contains("50 ms"), "{text}");
        assert!(server(&Err("no URL".to_owned())).state == State::Fault);
    }
}
