//! The PostgreSQL database that several servers share.

use daemon::database::{DatabaseReport, Examination};

use super::finding::Finding;
use crate::commands::words::count;

/// The oldest version that Warren works with.
const OLDEST: i32 = 130_000;

/// A clock that differs by more gets a note: a server's clock says which day a budget is of.
const CLOCK_OFF_S: u64 = 5;

/// Fewer rows of usage than this may wait at a busy moment. More are a sign that they are not sent.
const MANY_ROWS: u64 = 10_000;

/// The findings about the shared database, if the settings name one.
pub(super) fn all(examined: Option<&DatabaseReport>) -> Vec<Finding> {
    let Some(examined) = examined else { return Vec::new() };
    let mut findings = match &examined.found {
        Ok(found) => of_found(&examined.shown, found),
        Err(error) => vec![Finding::fault(
            CHECK,
            format!("{}: {error}", examined.shown),
            "is it up, are its address, user and password right, and is its certificate trusted here?",
        )],
    };
    findings.extend(examined.waiting.map(unsent));
    findings
}

const CHECK: &str = "database";

/// The findings about a database that was reached.
fn of_found(shown: &str, found: &Examination) -> Vec<Finding> {
    let checks = [version, rights, tables, encryption, announcements, clock];
    let wrong: Vec<Finding> = checks.iter().filter_map(|check| check(shown, found)).collect();
    if wrong.is_empty() { vec![well(shown, found)] } else { wrong }
}

fn well(shown: &str, found: &Examination) -> Finding {
    let tls = if found.is_encrypted { "TLS" } else { "no TLS, on this machine" };
    let tables = match found.tables {
        Some(version) => format!("tables of version {version}"),
        None => "the first start makes the tables".to_owned(),
    };
    let (major, minor) = (found.version / 10_000, found.version % 10_000);
    Finding::ok(CHECK, format!("{shown}: PostgreSQL {major}.{minor}, {tls}, {tables}"))
}

fn version(shown: &str, found: &Examination) -> Option<Finding> {
    let major = found.version / 10_000;
    (found.version < OLDEST).then(|| {
        let what = format!("{shown} is PostgreSQL {major}");
        Finding::fault(CHECK, what, "Warren needs version 13 or newer")
    })
}

fn rights(shown: &str, found: &Examination) -> Option<Finding> {
    if found.is_read_only {
        let what = format!("{shown} is for reading only");
        return Some(Finding::fault(CHECK, what, "name the server that can be written to"));
    }
    (!found.may_make).then(|| {
        let what = match found.has_schema {
            true => format!("this user may not make tables in the schema warren of {shown}"),
            false => format!("this user may not make a schema in {shown}"),
        };
        Finding::fault(CHECK, what, "CREATE SCHEMA warren AUTHORIZATION the user of the URL")
    })
}

fn tables(shown: &str, found: &Examination) -> Option<Finding> {
    let (tables, known) = (found.tables?, found.known_tables);
    if tables > known {
        let what =
            format!("the tables of {shown} are of version {tables}, this program knows {known}");
        return Some(Finding::fault(
            CHECK,
            what,
            "run the version of Warren that the other servers run",
        ));
    }
    (tables < known).then(|| {
        let what =
            format!("the tables of {shown} are of version {tables}, this program has {known}");
        Finding::note(
            CHECK,
            what,
            "the next start brings them up to date; then upgrade all servers",
        )
    })
}

fn encryption(shown: &str, found: &Examination) -> Option<Finding> {
    (found.is_elsewhere && !found.is_encrypted).then(|| {
        let what = format!("{shown} is on another machine, and the connection is not encrypted");
        Finding::note(CHECK, what, "leave sslmode=disable out, unless you trust the network")
    })
}

fn announcements(shown: &str, found: &Examination) -> Option<Finding> {
    (!found.announces).then(|| {
        let what = format!("what is announced in {shown} is not heard: LISTEN does not work");
        let advice = "connect to PostgreSQL itself, or through a pool that keeps sessions (pool_mode=session)";
        Finding::note(CHECK, what, advice)
    })
}

fn clock(shown: &str, found: &Examination) -> Option<Finding> {
    let (ahead, off) = (found.clock_ahead_s, found.clock_ahead_s.unsigned_abs());
    (off > CLOCK_OFF_S).then(|| {
        let how = if ahead > 0 { "ahead of" } else { "behind" };
        let what = format!("the clock of {shown} is {off} s {how} this machine's");
        Finding::note(
            CHECK,
            what,
            "set both by NTP: a server's clock says which day a budget is of",
        )
    })
}

fn unsent(rows: u64) -> Finding {
    const CHECK: &str = "unsent usage";
    let found = format!("{} for the shared database on this machine's disk", count(rows, "row"));
    match rows {
        0 => Finding::ok(CHECK, "no row waits for the shared database"),
        1..MANY_ROWS => Finding::ok(CHECK, format!("{found}: a server sends them")),
        _ => Finding::note(CHECK, found, "is the database reached, and does a server run here?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    fn good() -> Examination {
        Examination {
            version: 150_004,
            is_encrypted: true,
            is_elsewhere: true,
            has_schema: true,
            may_make: true,
            is_read_only: false,
            tables: Some(2),
            known_tables: 2,
            clock_ahead_s: 1,
            announces: true,
        }
    }

    fn found(change: fn(&mut Examination)) -> Vec<(State, String)> {
        let mut found = good();
        change(&mut found);
        let examined = DatabaseReport { shown: "db".to_owned(), found: Ok(found), waiting: None };
        all(Some(&examined)).into_iter().map(|finding| (finding.state, finding.found)).collect()
    }

    fn one(change: fn(&mut Examination), state: State, words: &str) {
        let findings = found(change);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].0 == state && findings[0].1.contains(words), "{findings:?}");
    }

    #[test]
    fn a_database_that_is_well_is_one_line() {
        one(|_| {}, State::Ok, "PostgreSQL 15.4, TLS, tables of version 2");
        one(|it| it.tables = None, State::Ok, "the first start makes the tables");
        assert!(all(None).is_empty(), "nobody shares anything");
    }

    #[test]
    fn each_thing_that_is_wrong_is_named() {
        one(|it| it.version = 120_009, State::Fault, "PostgreSQL 12");
        one(|it| it.may_make = false, State::Fault, "may not make tables");
        one(
            |it| (it.may_make, it.has_schema) = (false, false),
            State::Fault,
            "may not make a schema",
        );
        one(|it| it.is_read_only = true, State::Fault, "reading only");
        one(|it| it.tables = Some(9), State::Fault, "of version 9");
        one(|it| it.tables = Some(1), State::Note, "of version 1");
        one(|it| it.is_encrypted = false, State::Note, "not encrypted");
        one(|it| it.announces = false, State::Note, "LISTEN");
        one(|it| it.clock_ahead_s = -60, State::Note, "60 s behind");
        assert_eq!(found(|it| (it.announces, it.version) = (false, 1)).len(), 2, "all of it");
    }

    #[test]
    fn rows_that_wait_are_counted_and_many_are_noted() {
        let state = |rows| unsent(rows).state;
        assert_eq!([state(0), state(9), state(MANY_ROWS)], [State::Ok, State::Ok, State::Note]);
        let why = DatabaseReport {
            shown: "db".to_owned(),
            found: Err("no".to_owned()),
            waiting: Some(3),
        };
        let all = all(Some(&why));
        assert_eq!((all[0].state, all[1].state), (State::Fault, State::Ok));
        assert!(all[1].found.contains("3 rows"), "{:?}", all[1]);
    }
}
