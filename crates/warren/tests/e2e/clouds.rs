//! A cloud as the last resort: when it is asked, with which key, and what it costs.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{
    ChildProcess, Client, DEADLINE, Daemon, Form, MockBackend, Reply, daemon::WORKER_SECRET,
    eventually,
};

use crate::{
    cli::{make_key, warren, with_key},
    common::{CHAT, MESSAGES, ask, ask_for, binary, join, post, serve},
};

/// A million tokens of `gpt-x` cost one and two dollars, half as much from the cache.
const PRICES: &str = "[models.best]\ntargets = ['m', 'gpt-x']\n\
     [prices.gpt-x]\ninput = 1\noutput = 2\ncached_input = 0.5\n";

/// The cost of each answer of the cloud by these prices: 600 + 400 / 2 + 500 * 2 millionths.
const COST: &str = "0.0018";

/// A server with prices, a cloud with `gpt-x` and `m`, and the worker that knows its key.
struct Setting {
    daemon: Daemon,
    cloud: MockBackend,
    worker: ChildProcess,
    files: TempDir,
}

impl Setting {
    /// `key` is the line of the backend's section that says where the key is.
    async fn start(key: impl Fn(&Path) -> String) -> Self {
        let files = TempDir::new().unwrap();
        let settings = write(&files, "server.toml", PRICES);
        let daemon = serve().set("--config", &settings).start().await;
        let cloud = MockBackend::start(&["listed", "by", "nobody"]).await;
        cloud.answer_with(|_| answer());
        write(&files, "cloud.key", "sk-file-1\n");
        let section = format!(
            "[[worker.backends]]\nurl = '{}'\ncloud = true\nmodels = ['gpt-x', 'm']\n{}\n",
            cloud.url(),
            key(&files.path().join("cloud.key"))
        );
        let settings = write(&files, "worker.toml", &section);
        let program = binary().display().to_string();
        let url = daemon.url();
        let args = [
            "CLOUD_KEY=sk-environment",
            &program,
            "worker",
            "--config",
            &settings,
            "--server",
            &url,
            "--secret",
            WORKER_SECRET,
            "--name",
            "cloud",
        ];
        let worker = ChildProcess::start("cloud", Path::new("/usr/bin/env"), &args);
        daemon.has_workers(1).await;
        Self { daemon, cloud, worker, files }
    }

    async fn with_key_file() -> Self {
        Self::start(|path| format!("api_key_file = '{}'", path.display())).await
    }

    /// Asks for a model, and expects the cloud to answer.
    async fn cloud_answers(&self, client: &Client, model: &str) {
        let before = self.cloud.counts().started;
        let answer = client.post_json(CHAT, &ask_for(model, false)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(self.cloud.counts().started, before + 1, "{model}");
    }
}

fn write(files: &TempDir, name: &str, text: &str) -> String {
    let path = files.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

fn answer() -> Reply {
    let usage = json!({"prompt_tokens": 1_000, "completion_tokens": 500,
        "prompt_tokens_details": {"cached_tokens": 400}});
    let message = json!({"role": "assistant", "content": "from the cloud"});
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    Reply::json(
        200,
        &json!({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}),
    )
}

async fn totals(daemon: &Daemon, requests: u64) -> Value {
    let usage = async || daemon.admin().get("/admin/usage?by=model").await.json();
    eventually("the rows of the ledger", DEADLINE, async || {
        usage().await["totals"]["requests"] == requests
    })
    .await;
    usage().await
}

#[tokio::test]
async fn a_cloud_answers_only_while_no_machine_of_ones_own_can() {
    let setting = Setting::with_key_file().await;
    let (daemon, client) = (&setting.daemon, setting.daemon.client());
    let line = setting.worker.line_with("their prompts leave the house").await;
    assert!(line.contains("gpt-x, m") && line.contains(&setting.cloud.url()), "{line}");
    setting.cloud_answers(&client, "gpt-x").await;
    let asked = setting.cloud.request().await;
    assert_eq!(
        (asked.target.as_str(), asked.header("authorization")),
        (CHAT, Some("Bearer sk-file-1"))
    );

    let mut own = join(daemon, Form::Binary, "w", 1).await;
    let distances = daemon.workers().await;
    assert!(distances.iter().any(|worker| worker["distance"] == "cloud"), "{distances:?}");
    for model in ["m", "best"] {
        let posted = post(&client, CHAT, ask_for(model, false));
        let job = own.expect_job().await;
        own.complete(&job, 200, &json!({"it": "is ours"})).await;
        assert_eq!(posted.await.unwrap().json(), json!({"it": "is ours"}));
    }
    // A machine that is busy is waited for.
    let (first, second) = (post(&client, CHAT, ask(false)), post(&client, CHAT, ask(false)));
    let job = own.expect_job().await;
    daemon.has_queued(1).await;
    own.complete(&job, 200, &json!({})).await;
    let job = own.expect_job().await;
    own.vanish();
    assert_eq!(job.model, "m");
    // One of these lost its machine: the cloud takes it over.
    let texts = [first.await.unwrap().text(), second.await.unwrap().text()];
    assert!(texts.iter().any(|text| text.contains("from the cloud")), "{texts:?}");
    daemon.has_workers(1).await;
    for model in ["m", "best"] {
        setting.cloud_answers(&client, model).await;
    }
    let local = client.clone().with_header("x-warren-route", "local-only");
    let refused = local.post_json(CHAT, &ask(false)).await;
    assert_ne!(refused.status, 200, "{}", refused.text());

    let mut own = join(daemon, Form::Binary, "w", 1).await;
    let posted = post(&client, CHAT, ask(false));
    let job = own.expect_job().await;
    own.complete(&job, 200, &json!({"it": "is ours"})).await;
    assert_eq!(posted.await.unwrap().status, 200);
}

#[tokio::test]
async fn what_a_cloud_cost_is_in_the_ledger_the_reports_and_the_metrics() {
    let setting = Setting::start(|_| "api_key_env = 'CLOUD_KEY'".to_owned()).await;
    let (daemon, client) = (&setting.daemon, setting.daemon.client());
    for model in ["gpt-x", "best", "m"] {
        setting.cloud_answers(&client, model).await;
    }
    let asked = setting.cloud.request().await;
    assert_eq!(asked.header("authorization"), Some("Bearer sk-environment"));
    let usage = totals(daemon, 3).await;
    assert_eq!((&usage["totals"]["cost"], &usage["currency"]), (&json!("0.0018"), &json!("USD")));
    let of = |model: &str| {
        let rows = usage["rows"].as_array().unwrap();
        rows.iter().find(|row| row["model"] == model).unwrap()["cost"].clone()
    };
    assert_eq!([of("gpt-x"), of("m"), of("best")], [COST, "0.00", "0.00"].map(|cost| json!(cost)));
    let last = daemon.admin().get("/admin/requests").await.json();
    let costs: Vec<_> = last["requests"].as_array().unwrap().iter().map(|it| &it["cost"]).collect();
    assert_eq!(costs, [&Value::Null, &Value::Null, &json!(COST)]);
    let counted = daemon.metrics().await;
    assert!(counted.contains("warren_cost_total{model=\"gpt-x\"} 0.0018"), "{counted}");
    let url = daemon.url();
    let token = fs::read_to_string(daemon.data_dir().join("admin.token")).unwrap();
    let to = ["--server", &url, "--admin-token", token.trim()];
    let told = warren(&[&["usage", "--by", "model"], &to[..]].concat()).await;
    assert!(told.out.contains("COST USD") && told.out.contains(COST), "{}", told.out);
    assert!(told.out.lines().all(|line| line.len() <= 80), "{}", told.out);
}

#[tokio::test]
async fn a_refused_key_is_told_of_once_without_its_text_and_another_one_is_taken() {
    let setting = Setting::with_key_file().await;
    let client = setting.daemon.client();
    setting.cloud.answer_with(|asked| match asked.header("authorization") {
        Some("Bearer sk-file-2") => answer(),
        _ => Reply::json(401, &json!({"error": {"message": "bad key sk-file-1"}})),
    });
    for _ in 0..3 {
        let refused = client.post_json(CHAT, &ask_for("gpt-x", false)).await;
        assert_eq!(refused.status, 502, "{}", refused.text());
        assert!(refused.text().contains("refuses the API key"), "{}", refused.text());
    }
    setting.worker.line_with("refuses its API key").await;
    let told = setting.worker.log();
    assert_eq!(told.matches("refuses its API key").count(), 1, "{told}");
    assert!(!told.contains("sk-file") && !setting.daemon.log().contains("sk-file"), "{told}");
    write(&setting.files, "cloud.key", "sk-file-2\n");
    let answer = client.post_json(CHAT, &ask_for("gpt-x", false)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[tokio::test]
async fn a_budget_in_money_ends_by_name_and_a_key_may_be_barred_from_clouds() {
    let mut setting = Setting::with_key_file().await;
    let budget = json!({"amount": "0.002", "currency": "USD", "per": "month"});
    let (_, key) = make_key(&setting.daemon, json!({"limits": {"budget_money": budget}})).await;
    let client = with_key(&setting.daemon, &key);
    setting.cloud_answers(&client, "gpt-x").await;
    setting.cloud_answers(&client, "gpt-x").await;
    for api in [CHAT, MESSAGES] {
        let over = client.post_json(api, &ask_for("gpt-x", false)).await;
        assert_eq!(over.status, 429, "{api}");
        assert!(over.text().contains("limited to 0.002 USD a month"), "{api}: {}", over.text());
    }
    setting.cloud_answers(&client, "m").await;
    totals(&setting.daemon, 3).await;
    setting.daemon.stop_and_restart().await;
    setting.daemon.has_workers(1).await;
    let client = with_key(&setting.daemon, &key);
    assert_eq!(client.post_json(CHAT, &ask_for("gpt-x", false)).await.status, 429);

    let (_, barred) = make_key(&setting.daemon, json!({"limits": {"no_cloud": true}})).await;
    let client = with_key(&setting.daemon, &barred);
    assert_eq!(client.post_json(CHAT, &ask_for("gpt-x", false)).await.status, 404);
    let foreign = json!({"name": "a", "limits": {"budget_money":
        {"amount": "1", "currency": "EUR", "per": "day"}}});
    let refused = setting.daemon.admin().post_json("/admin/keys", &foreign).await;
    assert!(refused.text().contains("counts money in USD"), "{}", refused.text());
}
