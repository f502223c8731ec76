//! The address of the page: opened in this machine's browser, and shown for a phone.
//!
//! For a phone it is a QR code on a terminal of 80 columns and 24 lines, with the rest beside it.

use std::{
    env::var_os,
    process::{Command, Stdio},
};

use jiff::Timestamp;

use crate::{
    commands::{invite::shown::until, note, qr},
    system::IS_MACOS,
};

/// The program that opens an address with the user's choice of browser.
const OPENER: &str = if IS_MACOS { "open" } else { "xdg-open" };

/// The variables by which a program finds the screen.
const SCREENS: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];

/// Opens an address, if there is a screen. A machine without a browser is no failure: the address is printed, too.
pub(super) fn open(url: &str) {
    let is_set = |name: &&str| var_os(name).is_some_and(|screen| !screen.is_empty());
    if IS_MACOS || SCREENS.iter().any(is_set) {
        let mut opener = Command::new(OPENER);
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
