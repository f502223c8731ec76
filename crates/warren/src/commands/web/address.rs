//! The address of the page: opened in this machine's browser, and shown for a phone.
//!
//! For a phone it is a QR code on a terminal of 80 columns and 24 lines, with the rest beside it.

use std::process::Stdio;

use jiff::Timestamp;

use crate::{
    commands::{invite::shown::until, note, qr},
    system::opener,
};

/// Opens an address, if there is a screen. A machine without a browser is no failure: the address is printed, too.
pub(super) fn open(url: &str) {
    if let Some(mut opener) = opener() {
        opener.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // The browser goes on by itself.
        let _ = opener.spawn();
    }
}

/// Prints the address for people. `phone`: the address for a phone, if one reaches the server.
pub(super) fn show(phone: Option<&str>, expires: Timestamp) {
    let Some(url) = phone else {
        note(ONLY_HERE);
        return;
    };
    let mut lines = vec![
        "For a phone that reaches the server:".to_owned(),
        "scan this. It signs one browser in".to_owned(),
        format!("with your rights, until {}.", until(expires)),
        String::new(),
    ];
    lines.extend(warning(url).iter().map(|line| (*line).to_owned()));
    note(&qr::beside(url, &lines).unwrap_or_else(|| lines.join("\n")));
}

const ONLY_HERE: &str =
    "Only this machine reaches the server. For a phone, start it with --listen 0.0.0.0:9178";

fn warning(url: &str) -> &'static [&'static str] {
    match url.starts_with("http:") {
        true => &["Without TLS the network can read", "what is sent: `warren cert`."],
        false => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_and_what_stands_beside_it_fit_on_a_terminal() {
        let url = format!("https://192.168.100.100:9178/#login={}", "x".repeat(22));
        let lines = ["x".repeat(37)];
        let drawn = qr::beside(&url, &lines).unwrap();
        let widest = drawn.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 80 && drawn.lines().count() <= 20, "{drawn}");
        assert!(warning("http://192.0.2.1/").iter().all(|line| line.len() <= 37));
        assert!(warning(&url).is_empty());
    }
}
