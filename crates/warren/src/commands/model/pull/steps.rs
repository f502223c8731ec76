//! Shows the progress of a pull from a hub.

use std::{
    io,
    time::{Duration, Instant},
};

use serde::Serialize;

use crate::commands::{
    progress::{self, Progress},
    say_json_line,
    table::plain,
    words::{bytes, span},
};

/// The least time between two changes of the bar.
const BAR_EVERY: Duration = Duration::from_millis(100);

/// The least time between two lines of JSON.
const JSON_EVERY: Duration = Duration::from_secs(1);

/// The time over which the rate is measured.
const WINDOW: Duration = Duration::from_secs(5);

/// The display of one pull.
pub(super) struct Steps {
    model: String,
    host: String,
    /// The bar; `None` if steps are printed as JSON.
    bar: Option<Progress>,
    /// When progress was last shown, and the trouble that it reported.
    last_shown: Option<(Instant, Option<String>)>,
    rate: Rate,
}

/// A step, as JSON.
#[derive(Serialize)]
struct StepJson<'a> {
    state: &'static str,
    model: &'a str,
    from: &'a str,
    file: &'a str,
    bytes: u64,
    total: u64,
    rate: u64,
    eta_secs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

impl Steps {
    pub(super) fn new(model: &str, host: String, json: bool) -> Self {
        let bar = (!json).then(Progress::new);
        Self { model: model.to_owned(), host, bar, last_shown: None, rate: Rate::default() }
    }

    /// Shows a step, unless another was shown just before and nothing else has changed.
    pub(super) fn show(&mut self, step: &model_hub::Progress) -> io::Result<()> {
        let now = Instant::now();
        self.rate.note(now, step.bytes);
        let every = if self.bar.is_some() { BAR_EVERY } else { JSON_EVERY };
        let is_news = self.last_shown.as_ref().is_none_or(|(at, trouble)| {
            *trouble != step.trouble || now.duration_since(*at) >= every
        });
        if !is_news && step.bytes < step.total {
            return Ok(());
        }
        self.last_shown = Some((now, step.trouble.clone()));
        let rate = self.rate.per_second();
        let eta = (step.total - step.bytes.min(step.total)).checked_div(rate);
        let state = if step.trouble.is_some() { "waiting" } else { "running" };
        match &mut self.bar {
            Some(bar) => bar.show(progress::Step {
                name: &plain(&self.model),
                state,
                bytes: step.bytes,
                total: step.total,
                line: line(step, &self.host, rate, eta),
            }),
            None => say_json_line(&StepJson {
                state,
                model: &self.model,
                from: &self.host,
                file: &step.file,
                bytes: step.bytes,
                total: step.total,
                rate,
                eta_secs: eta,
                detail: step.trouble.as_deref(),
            })?,
        }
        Ok(())
    }

    pub(super) fn end(self) {
        if let Some(bar) = self.bar {
            bar.end();
        }
    }
}

fn line(step: &model_hub::Progress, host: &str, rate: u64, eta: Option<u64>) -> String {
    let mut parts = vec![format!("{} of {}", bytes(step.bytes), bytes(step.total))];
    match &step.trouble {
        Some(trouble) => parts.push(plain(trouble)),
        None => {
            parts.push(format!("{}/s", bytes(rate)));
            parts.extend(eta.map(|secs| format!("{} left", span(secs))));
        }
    }
    parts.push(format!("from {}", plain(host)));
    parts.join(", ")
}

/// The rate of bytes.
#[derive(Default)]
struct Rate {
    /// When the count began, and how many bytes were there.
    began: Option<(Instant, u64)>,
    rate: u64,
}

impl Rate {
    fn note(&mut self, now: Instant, bytes: u64) {
        let Some((at, before)) = self.began.filter(|(_, before)| bytes >= *before) else {
            self.began = Some((now, bytes));
            return;
        };
        let past = now.duration_since(at);
        if past >= Duration::from_millis(500) {
            self.rate = ((bytes - before) as f64 / past.as_secs_f64()) as u64;
        }
        if past >= WINDOW {
            self.began = Some((now, bytes));
        }
    }

    const fn per_second(&self) -> u64 {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_of_the_last_seconds() {
        let (begin, mut rate) = (Instant::now(), Rate::default());
        let mut at = |ms, bytes| {
            rate.note(begin + Duration::from_millis(ms), bytes);
            rate.per_second()
        };
        assert_eq!([at(0, 100), at(100, 200)], [0, 0]);
        assert_eq!(at(1_000, 1_100), 1_000);
        assert_eq!(at(5_000, 5_100), 1_000);
        assert_eq!(at(6_000, 25_100), 20_000, "what was before the window does not count");
        assert_eq!(at(6_100, 0), 20_000);
        assert_eq!(at(7_100, 500), 500, "it begins again with a file that does");
    }

    #[test]
    fn a_line_shows_amount_speed_time_left_and_source() {
        let mut step = model_hub::Progress {
            bytes: 1 << 20,
            total: 4 << 20,
            file: "m.gguf".to_owned(),
            trouble: None,
        };
        let text = line(&step, "hub", 1 << 20, Some(3));
        assert_eq!(text, "1.0 MiB of 4.0 MiB, 1.0 MiB/s, 3s left, from hub");
        step.trouble = Some("the connection ended".to_owned());
        let text = line(&step, "hub", 1 << 20, Some(3));
        assert_eq!(text, "1.0 MiB of 4.0 MiB, the connection ended, from hub");
    }
}
