//! An invitation's code on a terminal of 80 columns and 24 lines: the line to run, and a QR code with the rest
//! beside it.

use std::io::{IsTerminal, stderr};

use client::admin::invitations::{InvitationJson, RoomCode};
use jiff::{Timestamp, tz::TimeZone};

use crate::commands::{note, qr, room::is_loopback, say, table::plain};

pub(super) fn machine(made: &InvitationJson, qr: bool) -> anyhow::Result<()> {
    let code = made.code.as_deref().unwrap_or_default();
    say(&format!("warren join {code}"))?;
    let mut lines = vec![
        "Run this line on the machine that is".to_owned(),
        "to lend its models. It is good for".to_owned(),
        format!("one machine, until {}.", until(made.expires_at)),
        String::new(),
        format!("Invitation {}", made.id),
    ];
    lines.extend(made.name.iter().map(|name| format!("for {}", plain(name))));
    show(code, lines, &made.urls, qr);
    Ok(())
}

pub(super) fn guest(made: &RoomCode, qr: bool) -> anyhow::Result<()> {
    say(&format!("warren join {}", made.code))?;
    let mut lines = vec![
        "Run this line on a machine to lend".to_owned(),
        "its model to the room. It is good for".to_owned(),
        "everybody, as long as the room is.".to_owned(),
    ];
    if made.has_password {
        lines.extend([String::new(), "The room's password is in it.".to_owned()]);
    }
    show(&made.code, lines, &made.urls, qr);
    Ok(())
}

/// Prints the line to standard output, and everything else for people.
fn show(code: &str, mut lines: Vec<String>, urls: &[String], qr: bool) {
    lines.extend([String::new(), "Server:".to_owned()]);
    lines.extend(urls.iter().map(|url| plain(url)));
    lines.push(String::new());
    lines.extend(warnings(urls).iter().map(|line| (*line).to_owned()));
    let drawn = qr::beside(code, &lines).filter(|_| qr || stderr().is_terminal());
    note(&drawn.unwrap_or_else(|| lines.join("\n")));
}

fn warnings(urls: &[String]) -> &'static [&'static str] {
    if urls.iter().all(|url| is_loopback(url)) {
        return &[
            "Only this machine reaches that. Start",
            "the server with --listen 0.0.0.0:9178",
            "and invite again.",
        ];
    }
    if urls.iter().any(|url| url.starts_with("http:")) {
        return &["Without TLS the network can read", "keys and prompts: `warren cert`."];
    }
    &[]
}

/// A time within the next days, in words.
pub(in crate::commands) fn until(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%b %-d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns beside a QR code of the usual size.
    const BESIDE: usize = 37;

    #[test]
    fn what_stands_beside_a_code_fits_there() {
        let urls = ["http://192.168.100.100:9178".to_owned(), "http://127.0.0.1:1".to_owned()];
        for warning in warnings(&urls).iter().chain(warnings(&urls[1..])) {
            assert!(warning.len() <= BESIDE, "{warning}");
        }
        assert!(warnings(&["https://192.168.100.100:9178".to_owned()]).is_empty());
        assert_eq!(warnings(&urls).len(), 2);
        assert_eq!(warnings(&urls[1..]).len(), 3);
    }
}
