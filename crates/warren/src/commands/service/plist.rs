//! The file of a service of launchd.

use std::{path::Path, time::Duration};

use super::{environment::Variable, place::Place};

/// The time that launchd waits beyond the drain before it kills.
const AFTER_DRAIN: Duration = Duration::from_secs(15);

/// The file of a service that runs these words, with these variables: launchd reads no file of variables. `log`: the
/// file for what the service writes.
pub(super) fn text(
    place: &Place,
    words: &[String],
    variables: &[Variable],
    drain: Duration,
    log: &Path,
) -> String {
    let stop = (drain + AFTER_DRAIN).as_secs_f64().ceil() as u64;
    let words: String = words.iter().map(|word| format!("    {}\n", string(word))).collect();
    let variables: String = variables
        .iter()
        .map(|(name, value)| {
            format!("    <key>{}</key>{}\n", escaped(name), string(value.expose()))
        })
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <!-- Written by `warren service install`. -->\n\
         <plist version=\"1.0\">\n\
         <dict>\n  \
           <key>Label</key>{label}\n  \
           <key>ProgramArguments</key>\n  \
           <array>\n{words}  \
           </array>\n  \
           <key>EnvironmentVariables</key>\n  \
           <dict>\n{variables}  \
           </dict>\n  \
           <key>RunAtLoad</key><true/>\n  \
           <key>KeepAlive</key><true/>\n  \
           <key>ExitTimeOut</key><integer>{stop}</integer>\n  \
           <key>SoftResourceLimits</key><dict><key>NumberOfFiles</key><integer>{FILES}</integer></dict>\n  \
           <key>StandardOutPath</key>{log}\n  \
           <key>StandardErrorPath</key>{log}\n\
         </dict>\n\
         </plist>\n",
        label = string(&place.name),
        log = string(&log.display().to_string()),
    )
}

/// The open files of a service. launchd gives 256, and each connection takes one.
const FILES: u64 = 65_536;

/// The words of the command line in a text that [`text`] wrote.
pub(super) fn words_of(plist: &str) -> Option<Vec<String>> {
    let (_, after) = plist.split_once("<key>ProgramArguments</key>")?;
    let (array, _) = after.split_once("</array>")?;
    let strings = array.split("<string>").skip(1);
    strings.map(|string| Some(unescaped(string.split_once("</string>")?.0))).collect()
}

/// The time for the service's end in a text that [`text`] wrote.
pub(super) fn stop_time(plist: &str) -> Option<Duration> {
    let (_, after) = plist.split_once("<key>ExitTimeOut</key><integer>")?;
    let (seconds, _) = after.split_once("</integer>")?;
    seconds.parse().ok().map(Duration::from_secs)
}

fn string(text: &str) -> String {
    format!("<string>{}</string>", escaped(text))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use base::Secret;
    use proptest::prelude::*;

    use super::*;
    use crate::commands::service::place::Scope;

    fn plist(words: &[String], value: &str) -> String {
        let place = Place {
            scope: Scope::User,
            name: "org.warren".to_owned(),
            unit: "/u/org.warren.plist".into(),
            environment: "/e/warren.env".into(),
        };
        let variables = [("WARREN_SECRET".to_owned(), Secret::from(value))];
        text(&place, words, &variables, Duration::from_secs_f64(60.5), Path::new("/l/warren.log"))
    }

    #[test]
    fn a_service_has_its_command_its_variables_and_time_to_drain() {
        let words = ["/opt/a b/warren", "serve", "--log", "<info>&"].map(str::to_owned);
        let text = plist(&words, "a&b");
        for part in [
            "<key>Label</key><string>org.warren</string>\n",
            "    <string>/opt/a b/warren</string>\n    <string>serve</string>\n",
            "    <string>&lt;info&gt;&amp;</string>\n  </array>\n",
            "    <key>WARREN_SECRET</key><string>a&amp;b</string>\n  </dict>\n",
            "<key>ExitTimeOut</key><integer>76</integer>\n",
            "<key>StandardErrorPath</key><string>/l/warren.log</string>\n</dict>\n</plist>\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert_eq!(stop_time(&text), Some(Duration::from_secs(76)));
    }

    proptest! {
        #[test]
        fn words_are_read_back_as_they_were(all in proptest::collection::vec("[^\u{0}-\u{1f}]{0,12}", 0..6)) {
            prop_assert_eq!(words_of(&plist(&all, "")), Some(all));
        }
    }
}
