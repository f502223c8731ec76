//! A node server's messages, and the query of a node: nothing panics, and what is understood says
//! the same once it is written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::node::{Query, ServerMessage};

fuzz_target!(|text: &str| {
    if let Ok(message) = ServerMessage::decode(text) {
        let written = match &message {
            ServerMessage::Task(task) => task.encode(),
            ServerMessage::Stop(stop) => stop.encode(),
        };
        let again = ServerMessage::decode(&written).unwrap();
        match (message, again) {
            (ServerMessage::Task(task), ServerMessage::Task(mut again)) => {
                // The last digit of a number may differ.
                assert!(
                    (task.temperature - again.temperature).abs() <= task.temperature.abs() * 1e-12
                );
                again.temperature = task.temperature;
                assert_eq!(task, again);
            }
            (message, again) => assert_eq!(message, again),
        }
    }
    if let Ok(query) = Query::parse(text) {
        assert_eq!(Query::parse(&query.encode()), Ok(query));
    }
});
