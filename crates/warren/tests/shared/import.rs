//! A server that has worked alone takes its keys and its usage along.

use std::{path::Path, process::Command};

use serde_json::Value;
use testkit::{ChildProcess, DEADLINE, Serve, eventually, postgres::PostgresServer};

use crate::servers::{answered, answers, binary, make_key, sharing, tells_requests, worker};

fn import(database: &str, data: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(binary());
    command.args(["database", "import", "--data-dir"]).arg(data).args(args);
    let done = command.env("WARREN_DATABASE", database).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[tokio::test]
async fn keys_and_usage_of_before_are_taken_along_when_the_server_has_stopped() {
    let database = PostgresServer::shared().database();
    let alone = Serve::new(binary()).set("--admin-token", "wa_the-owners").flag("--require-key");
    let mut alone = alone.start().await;
    let (id, text) = make_key(&alone).await;
    let mut lent = worker(&alone).await;
    answered(&alone, &mut lent, &text).await;
    tells_requests(&alone, &id, 1).await;
    let data = alone.data_dir().to_owned();
    let (code, _, said) = import(&database, &data, &[]);
    assert!(code == Some(1) && said.contains("stop the server first"), "{said}");
    alone.sigterm();
    alone.exit().await;

    let hinted = hint(&database, &data).await;
    assert!(hinted.contains("`warren database import`"), "{hinted}");
    let (code, said, _) = import(&database, &data, &["--dry-run"]);
    assert_eq!(code, Some(0));
    assert!(
        said.contains("1 key would be taken along") && said.contains("1 row of usage"),
        "{said}"
    );
    for (new, known) in [(1, 0), (0, 1)] {
        let (_, told, said) = import(&database, &data, &["--json"]);
        let told: Value = serde_json::from_str(&told).unwrap_or_else(|_| panic!("{said}"));
        let counted = &told["usage"];
        assert_eq!((&counted["new"], &counted["known"]), (&new.into(), &known.into()), "{told}");
    }
    let other = sharing(&database).start().await;
    answers(&other, &text, 200).await;
    tells_requests(&other, &id, 1).await;
}

/// The hint of a server that starts with this empty database and keys of its own.
async fn hint(database: &str, data: &Path) -> String {
    let (database, data) = (format!("WARREN_DATABASE={database}"), data.display().to_string());
    let program = binary().display().to_string();
    let args = [&database, &program, "serve", "--listen", "127.0.0.1:0", "--data-dir", &data];
    let mut server = ChildProcess::start("hinted", Path::new("/usr/bin/env"), &args);
    server.listening("http").await;
    eventually("the hint", DEADLINE, async || server.log().contains("database import")).await;
    server.sigterm();
    server.exit().await;
    server.log()
}
