//! Opens this machine's browser.

use std::{
    env::var_os,
    process::{Command, Stdio},
};

/// The program that opens an address with the user's choice of browser.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// The variables by which a program finds the screen.
const SCREENS: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];

/// Opens an address, if there is a screen. A machine without a browser is no failure: the address is printed, too.
pub(super) fn open(url: &str) {
    let is_set = |name: &&str| var_os(name).is_some_and(|screen| !screen.is_empty());
    if cfg!(target_os = "macos") || SCREENS.iter().any(is_set) {
        let mut opener = Command::new(OPENER);
        opener.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // The browser goes on by itself.
        let _ = opener.spawn();
    }
}
