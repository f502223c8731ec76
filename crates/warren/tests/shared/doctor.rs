//! The findings of `warren doctor` about a shared database.

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use testkit::postgres::PostgresServer;

use crate::servers::{binary, make_key, sharing};

/// The findings about a database.
fn findings(database: &str, home: &TempDir) -> Vec<Value> {
    let mut command = Command::new(binary());
    command.args(["doctor", "--json"]).current_dir(home.path()).env("HOME", home.path());
    command.env("WARREN_DATABASE", database).env("WARREN_DATA_DIR", home.path());
    let done = command.output().unwrap();
    let told: Value = serde_json::from_slice(&done.stdout).unwrap();
    let checks = told["checks"].as_array().unwrap();
    checks.iter().filter(|check| check["check"] == "database").cloned().collect()
}

#[tokio::test]
async fn the_doctor_sees_what_a_shared_database_is_like() {
    let (postgres, home) = (PostgresServer::shared(), TempDir::new().unwrap());
    let database = postgres.database();
    let said = |findings: &[Value]| {
        let [finding] = findings else { panic!("{findings:?}") };
        (
            finding["state"].as_str().unwrap().to_owned(),
            finding["found"].as_str().unwrap().to_owned(),
        )
    };
    let (state, found) = said(&findings(&database, &home));
    assert!(state == "ok" && found.contains("the first start makes the tables"), "{found}");
    let one = sharing(&database).start().await;
    make_key(&one).await;
    let (state, found) = said(&findings(&database, &home));
    assert!(state == "ok" && found.contains("PostgreSQL") && !found.contains("warren@"), "{found}");
    postgres.sql(&database, "UPDATE warren.tables SET version = 99");
    let (state, found) = said(&findings(&database, &home));
    assert!(state == "fault" && found.contains("version 99"), "{found}");
    postgres.sql(&database, "CREATE ROLE poor LOGIN");
    let (state, found) = said(&findings(&database.replace("warren@", "poor@"), &home));
    assert!(state == "fault" && found.contains("may not make tables"), "{found}");
    let (state, found) = said(&findings(&database.replace("/d", "/none"), &home));
    assert!(state == "fault" && found.contains("does not exist"), "{found}");
}
