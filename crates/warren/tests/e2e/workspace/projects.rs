//! Projects: made, changed, listed and forgotten.

use serde_json::{Value, json};
use testkit::workspace::samples::NOBODY;

use super::kit::{WorkspaceHost, id_of};
use crate::common::assert_fields;

#[tokio::test]
async fn create_project_is_saved_and_told_to_everybody() {
    let place = WorkspaceHost::start().await;
    let (mut client, mut other) = (place.client().await, place.client().await);
    let create = json!({
        "type": "create_project", "name": "mine", "working_dir": place.dir(), "env": {"A": "b"},
    });
    let project = client.ask(create, "project_saved").await["project"].clone();
    assert_eq!((&project["name"], &project["env"]), (&json!("mine"), &json!({"A": "b"})));
    assert_eq!((&project["run_as_user"], &project["node_id"]), (&Value::Null, &Value::Null));
    assert_eq!(project["created_at"], project["updated_at"]);
    assert_eq!(other.hear("project_saved").await["project"], project);
    let missing = place.path().join("missing").display().to_string();
    for (name, dir) in [("", &*place.dir()), ("n", "relative"), ("n", &missing), ("n", "")] {
        client.refused(json!({"type": "create_project", "name": name, "working_dir": dir})).await;
    }
    for env in [json!({"A=B": "c"}), json!({"": "c"}), json!({"A": 7}), json!({"A": "\u{0}"})] {
        let create = json!({
            "type": "create_project", "name": "n", "working_dir": place.dir(), "env": env,
        });
        client.refused(create).await;
    }
}

#[tokio::test]
async fn list_projects_tells_all_by_name() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    for name in ["b", "a", "c"] {
        let create = json!({"type": "create_project", "name": name, "working_dir": place.dir()});
        client.ask(create, "project_saved").await;
    }
    let list = client.ask(json!({"type": "list_projects"}), "project_list").await;
    let names: Vec<&Value> =
        list["projects"].as_array().unwrap().iter().map(|project| &project["name"]).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[tokio::test]
async fn update_project_changes_what_is_said_and_nothing_else() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let id = place.project(&mut client).await;
    let update = json!({"type": "update_project", "project_id": id, "env": {"X": "y"}});
    let changed = client.ask(update, "project_saved").await["project"].clone();
    assert_eq!((&changed["name"], &changed["env"]), (&json!("p"), &json!({"X": "y"})));
    let update = json!({"type": "update_project", "project_id": id, "name": "q"});
    let changed = client.ask(update, "project_saved").await["project"].clone();
    assert_eq!((&changed["name"], &changed["env"]), (&json!("q"), &json!({"X": "y"})));
    assert_eq!(changed["working_dir"], place.dir());
    let update = json!({"type": "update_project", "project_id": NOBODY, "name": "q"});
    assert!(client.refused(update).await.contains(NOBODY));
}

#[tokio::test]
async fn delete_project_forgets_it_and_leaves_its_files() {
    let place = WorkspaceHost::start().await;
    let (mut client, mut other) = (place.client().await, place.client().await);
    let id = place.project(&mut client).await;
    std::fs::write(place.path().join("kept"), "x").unwrap();
    let removed =
        client.ask(json!({"type": "delete_project", "project_id": id}), "project_removed").await;
    assert_eq!(removed["project_id"], id.as_str());
    assert_eq!(other.hear("project_removed").await["project_id"], id.as_str());
    assert!(place.path().join("kept").exists());
    assert!(
        client.refused(json!({"type": "delete_project", "project_id": id})).await.contains(&id)
    );
    let list = client.ask(json!({"type": "list_projects"}), "project_list").await;
    assert_eq!(list["projects"], json!([]));
}

#[tokio::test]
async fn a_session_of_a_project_starts_in_it() {
    let (place, mut client) = WorkspaceHost::with_client().await;
    let project = place.project(&mut client).await;
    let open = json!({"type": "open_terminal", "command": "sh", "project_id": project});
    let session = client.ask(open, "terminal_opened").await["session"].clone();
    assert_fields(&session, &json!({"working_dir": place.dir(), "project_id": project}));
    id_of(&session);
    let open = json!({"type": "open_terminal", "command": "sh", "project_id": NOBODY});
    assert!(client.refused(open).await.contains(NOBODY));
}
