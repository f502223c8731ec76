//! Git's report of a project.

use std::{fs, path::Path};

use serde_json::{Value, json};
use testkit::{
    git::git,
    workspace::{WorkspaceClient, samples::NOBODY},
};

use super::kit::WorkspaceHost;

/// A project that is a repository with one commit, and who asks about it.
struct Repository {
    place: WorkspaceHost,
    client: WorkspaceClient,
    project: String,
}

impl Repository {
    async fn new() -> Self {
        let (place, mut client) = WorkspaceHost::with_client().await;
        let project = place.project(&mut client).await;
        let repository = Self { place, client, project };
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        repository.write("src/lib.rs", "old\n");
        repository.write("README.md", "hi\n");
        repository.git(&["add", "."]);
        repository.git(&["commit", "--quiet", "--message", "one"]);
        repository
    }

    fn root(&self) -> &Path {
        self.place.path()
    }

    fn git(&self, args: &[&str]) {
        git(self.root(), args);
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    async fn status(&mut self) -> Value {
        let ask = json!({"type": "git_status", "project_id": self.project});
        self.client.ask(ask, "git_status_result").await
    }

    async fn diff(&mut self, path: &str, staged: bool) -> String {
        let project = &self.project;
        let ask =
            json!({"type": "git_diff", "project_id": project, "path": path, "staged": staged});
        let result = self.client.ask(ask, "git_diff_result").await;
        assert_eq!((&result["path"], &result["staged"]), (&json!(path), &json!(staged)));
        result["patch"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn git_status_tells_what_is_staged_changed_and_new() {
    let mut repository = Repository::new().await;
    let clean = repository.status().await;
    assert_eq!((&clean["is_repo"], &clean["branch"]), (&json!(true), &json!("main")), "{clean}");
    assert_eq!((&clean["upstream"], &clean["staged"]), (&Value::Null, &json!([])), "{clean}");
    repository.write("src/lib.rs", "new\n");
    repository.git(&["add", "src/lib.rs"]);
    repository.write("README.md", "ho\n");
    repository.write("odd \"name\"\n.txt", "x");
    let status = repository.status().await;
    assert_eq!(status["staged"], json!([{"path": "src/lib.rs", "status": "M"}]), "{status}");
    assert_eq!(status["unstaged"], json!([{"path": "README.md", "status": "M"}]), "{status}");
    assert_eq!(status["untracked"], json!(["odd \"name\"\n.txt"]), "{status}");
    repository.git(&["mv", "src/lib.rs", "src/main.rs"]);
    let status = repository.status().await;
    let staged = status["staged"].as_array().unwrap();
    assert!(staged.iter().any(|change| change["path"] == "src/main.rs"), "{status}");

    let ask = json!({"type": "git_status", "project_id": NOBODY});
    let error = repository.client.ask(ask, "git_error").await;
    assert!(error["message"].as_str().unwrap().contains("no project"), "{error}");
}

#[tokio::test]
async fn git_diff_tells_what_is_staged_or_what_is_not() {
    let mut repository = Repository::new().await;
    repository.write("src/lib.rs", "staged\n");
    repository.git(&["add", "src/lib.rs"]);
    repository.write("src/lib.rs", "not staged\n");
    let staged = repository.diff("src/lib.rs", true).await;
    assert!(staged.contains("\n-old\n+staged\n"), "{staged}");
    let unstaged = repository.diff("src/lib.rs", false).await;
    assert!(unstaged.contains("\n-staged\n+not staged\n"), "{unstaged}");
    assert_eq!(repository.diff("README.md", false).await, "");
    for path in ["../outside", "/etc/passwd"] {
        let project = &repository.project;
        let ask = json!({"type": "git_diff", "project_id": project, "path": path, "staged": false});
        repository.client.ask(ask, "git_error").await;
    }
}
