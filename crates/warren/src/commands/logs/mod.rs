//! `warren logs`: the newest lines of a running server's log; `journal`: those of a service that does not answer.

mod journal;

use anyhow::bail;
use clap::{Args, builder::PossibleValuesParser};
use client::{
    ClientError, LogQuery,
    admin::logs::{LogEvent, LogLevel, LogLine},
};
use daemon::ConfigFile;

use super::{note, run_client, say, say_json_line, target::RunningServer, words::count};

/// The most lines that are asked for: more than a server keeps.
const MOST: usize = 1_000_000;

/// Show the newest lines of a server's log
#[derive(Args)]
#[command(
    after_help = "A server keeps the newest MiB of its log in memory. When none answers, the journal of an \
installed service is shown.\n\nExamples:\n  warren logs\n  warren logs -f --level warn\n  \
warren logs -n 1000 --json --server https://box.lan:9178 --admin-token TOKEN"
)]
pub(crate) struct Logs {
    /// How many lines, or `all`
    #[arg(short = 'n', long, value_name = "N", default_value = "100", value_parser = lines)]
    lines: usize,
    /// Go on with new lines until Ctrl-C, or until the server stops
    #[arg(short, long)]
    follow: bool,
    /// Only lines of this level and graver ones
    #[arg(long, value_name = "LEVEL", default_value = "trace",
        value_parser = PossibleValuesParser::new(LogLevel::ALL.map(LogLevel::as_str)))]
    level: String,
    /// Print JSON, one object for each line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

fn lines(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(MOST),
        text => text.parse().map_err(|_| format!("{text:?} is no number, and not `all`")),
    }
}

impl Logs {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        run_client(self.show(file))
    }

    async fn show(self, file: &ConfigFile) -> anyhow::Result<()> {
        let level: LogLevel = self.level.parse().map_err(anyhow::Error::msg)?;
        let warren = match self.server.warren(&file.serve) {
            Ok(warren) => warren,
            // Without a data directory no server has ever run here; a service may, for another user.
            Err(error) => return self.show_journal(file, level, error).await,
        };
        let query = LogQuery { limit: self.lines.min(MOST), level };
        let shown = if self.follow {
            follow(warren.follow_logs(query).await, self.json).await
        } else {
            warren
                .logs(query)
                .await
                .map_err(anyhow::Error::from)
                .and_then(|lines| self.list(&lines))
        };
        match shown {
            Err(error) if is_unreachable(&error) => self.show_journal(file, level, error).await,
            shown => shown,
        }
    }

    fn list(&self, lines: &[LogLine]) -> anyhow::Result<()> {
        if lines.is_empty() && !self.json {
            note("the server's log has no such line");
        }
        lines.iter().try_for_each(|line| print(line, self.json))
    }

    /// Shows the journal of an installed service, unless the server is on another machine.
    async fn show_journal(
        &self,
        file: &ConfigFile,
        level: LogLevel,
        error: anyhow::Error,
    ) -> anyhow::Result<()> {
        let url = self.server.url(&file.serve);
        if !client::Warren::new(&url, None).is_ok_and(|warren| warren.is_on_this_machine()) {
            return Err(error);
        }
        let Some(place) = journal::service().await else {
            return Err(error.context(
                "no log was found: no service of Warren is installed here, and a server that was started by hand \
                 writes to its own terminal",
            ));
        };
        note(&format!("No server answers; this is the journal of {}.", place.name));
        let lines = (self.lines < MOST).then_some(self.lines);
        if self.json {
            bail!("the journal has no JSON of Warren: leave --json out, or use journalctl -o json");
        }
        journal::show(&place, lines, self.follow, level).await
    }
}

fn is_unreachable(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(ClientError::is_unreachable)
}

async fn follow(logging: Result<client::Logging, ClientError>, json: bool) -> anyhow::Result<()> {
    let mut logging = logging?;
    while let Some(event) = logging.next().await.map_err(|error| broken(&error))? {
        match event {
            LogEvent::Line(line) => print(&line, json)?,
            LogEvent::Missed { missed } if json => say_json_line(&LogEvent::Missed { missed })?,
            LogEvent::Missed { missed } => note(&format!("… {} missed …", count(missed, "line"))),
        }
    }
    note("the server stops");
    Ok(())
}

/// The error of a log that broke off after its beginning. It is not continued from the journal.
fn broken(error: &ClientError) -> anyhow::Error {
    anyhow::anyhow!("the log broke off: {error}")
}

fn print(line: &LogLine, json: bool) -> anyhow::Result<()> {
    Ok(if json { say_json_line(line) } else { say(&line.text) }?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_lines_may_be_all() {
        assert_eq!([lines("7"), lines("all")], [Ok(7), Ok(MOST)]);
        assert!(lines("-1").unwrap_err().contains("`all`"));
    }
}
