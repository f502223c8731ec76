//! Projects: working directories with a name, a user and an environment.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use protocol::workspace::{
    ClientMessage, Project, ProjectId, ServerMessage,
    client::{CreateProject, OfProject, ProjectList, ProjectSaved, UpdateProject},
};
use store::{Change, Fact, StoreError, WorkspaceStore};
use tokio::task;

use crate::{refusal::Refusal, socket::Identity, users, work::Shared};

/// The kind of these facts in the store.
pub(crate) const KIND: &str = "project";
/// The most projects there may be.
const MOST: usize = 4096;

/// All projects.
pub(crate) struct Projects {
    run_as: Vec<String>,
    known: Mutex<BTreeMap<ProjectId, Project>>,
    /// Held while one is changed in the store, so that changes reach it in their order.
    changing: tokio::sync::Mutex<()>,
}

/// Where a project's files are, and as whom they are used.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    pub(crate) user: Option<process::User>,
}

impl Projects {
    /// None yet. Theirs may run as these users.
    pub(crate) fn new(run_as: Vec<String>) -> Self {
        Self { run_as, known: Mutex::default(), changing: tokio::sync::Mutex::default() }
    }

    /// Finds those that were kept. One that cannot be read is left alone, and the log says so.
    pub(crate) fn restore(&self, store: &dyn WorkspaceStore) -> Result<(), StoreError> {
        let facts = store.load_facts(KIND)?;
        let projects = facts.into_iter().filter_map(|fact| read(&fact));
        self.lock().extend(projects.map(|project| (project.id, project)));
        Ok(())
    }

    /// Answers a message about projects.
    pub(crate) async fn answer(
        &self,
        shared: &Arc<Shared>,
        who: &Identity,
        message: ClientMessage,
    ) -> Result<ServerMessage, Refusal> {
        let (what, target) = change(&message);
        let answered = match message {
            ClientMessage::CreateProject(create) => self.create(shared, who, create).await,
            ClientMessage::UpdateProject(update) => self.update(shared, who, update).await,
            ClientMessage::DeleteProject(delete) => self.delete(shared, who, delete).await,
            ClientMessage::ListProjects => return Ok(self.all()),
            other => Err(Refusal::Invalid(format!("{} is not about projects", other.name()))),
        };
        // What was done has been noted, with the project's id.
        if let Err(refusal) = &answered {
            shared.audit.note(&who.who, what, &target, &refusal.to_string());
        }
        answered
    }

    /// All, by name.
    pub(crate) fn list(&self) -> Vec<Project> {
        let mut projects: Vec<Project> = self.lock().values().cloned().collect();
        projects.sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
        projects
    }

    pub(crate) fn get(&self, id: ProjectId) -> Result<Project, Refusal> {
        self.lock().get(&id).cloned().ok_or(Refusal::UnknownProject(id))
    }

    /// Where its files are. Its user must still be allowed. It may block, as [`users::find`] does.
    pub(crate) fn place(&self, id: ProjectId) -> Result<Place, Refusal> {
        let project = self.get(id)?;
        let user = users::find(&self.run_as, project.run_as_user.as_deref())?;
        Ok(Place { dir: project.working_dir.into(), user })
    }

    async fn create(
        &self,
        shared: &Arc<Shared>,
        who: &Identity,
        create: CreateProject,
    ) -> Result<ServerMessage, Refusal> {
        let now = Timestamp::now();
        let project = Project {
            id: ProjectId::from_random(rand::random()),
            name: create.name,
            working_dir: create.working_dir,
            run_as_user: create.run_as_user,
            env: create.env,
            node_id: None,
            created_at: now,
            updated_at: now,
        };
        let _turn = self.changing.lock().await;
        if self.lock().len() >= MOST {
            return Err(Refusal::TooMany { what: "projects", most: MOST });
        }
        self.save(shared, who, "project.create", project).await
    }

    async fn update(
        &self,
        shared: &Arc<Shared>,
        who: &Identity,
        update: UpdateProject,
    ) -> Result<ServerMessage, Refusal> {
        let _turn = self.changing.lock().await;
        let project = changed(self.get(update.project_id)?, update);
        self.save(shared, who, "project.update", project).await
    }

    async fn delete(
        &self,
        shared: &Arc<Shared>,
        who: &Identity,
        delete: OfProject,
    ) -> Result<ServerMessage, Refusal> {
        let _turn = self.changing.lock().await;
        let id = self.get(delete.project_id)?.id;
        keep(&shared.store, Change::Forget { kind: KIND.to_owned(), id: id.to_string() }).await?;
        self.lock().remove(&id);
        shared.audit.note(&who.who, "project.delete", &id.to_string(), "done");
        let removed = ServerMessage::ProjectRemoved(delete);
        shared.events.tell(removed.clone());
        Ok(removed)
    }

    /// Keeps a project once it has been found to be one that can be used.
    async fn save(
        &self,
        shared: &Arc<Shared>,
        who: &Identity,
        what: &'static str,
        mut project: Project,
    ) -> Result<ServerMessage, Refusal> {
        let user = users::user(&shared.settings, project.run_as_user.as_deref()).await?;
        let dir = working_dir(&project.working_dir, user.as_ref()).await?;
        project.working_dir = text(&dir)?;
        keep(&shared.store, Change::Keep(fact(&project)?)).await?;
        self.lock().insert(project.id, project.clone());
        shared.audit.note(&who.who, what, &project.id.to_string(), "done");
        let saved = ServerMessage::ProjectSaved(ProjectSaved { project });
        shared.events.tell(saved.clone());
        Ok(saved)
    }

    fn all(&self) -> ServerMessage {
        ServerMessage::ProjectList(ProjectList { projects: self.list() })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ProjectId, Project>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a message changes, for the audit log.
fn change(message: &ClientMessage) -> (&'static str, String) {
    match message {
        ClientMessage::CreateProject(create) => ("project.create", create.working_dir.clone()),
        ClientMessage::UpdateProject(update) => ("project.update", update.project_id.to_string()),
        ClientMessage::DeleteProject(delete) => ("project.delete", delete.project_id.to_string()),
        _ => ("project.other", String::new()),
    }
}

/// A directory to work in, in full: it begins with `/` or `~`, and is there.
pub(crate) async fn working_dir(
    dir: &str,
    user: Option<&process::User>,
) -> Result<PathBuf, Refusal> {
    let full = match dir.strip_prefix('~') {
        Some("") => users::home(user)?,
        Some(rest) if rest.starts_with('/') => {
            users::home(user)?.join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(dir),
    };
    if !full.is_absolute() {
        return Err(Refusal::Invalid(format!(
            "the working directory {dir:?} is no full path: it has to begin with / or ~"
        )));
    }
    let unusable = |why: String| {
        Refusal::Invalid(format!("the working directory {} cannot be used: {why}", full.display()))
    };
    match tokio::fs::metadata(&full).await {
        Ok(found) if found.is_dir() => Ok(full),
        Ok(_) => Err(unusable("it is no directory".to_owned())),
        Err(error) => Err(unusable(error.to_string())),
    }
}

/// A path as messages have it.
pub(crate) fn text(path: &Path) -> Result<String, Refusal> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Refusal::Invalid(format!("{} is not UTF-8", path.display())))
}

fn changed(project: Project, update: UpdateProject) -> Project {
    let run_as_user = match update.run_as_user {
        Some(nobody) if nobody.is_empty() => None,
        other => other.or(project.run_as_user),
    };
    Project {
        name: update.name.unwrap_or(project.name),
        working_dir: update.working_dir.unwrap_or(project.working_dir),
        env: update.env.unwrap_or(project.env),
        run_as_user,
        updated_at: Timestamp::now(),
        ..project
    }
}

async fn keep(store: &Arc<dyn WorkspaceStore>, change: Change) -> Result<(), Refusal> {
    let store = Arc::clone(store);
    let kept = task::spawn_blocking(move || store.change_facts(&[change])).await;
    Ok(kept.map_err(|error| Refusal::failed(&error))??)
}

fn fact(project: &Project) -> Result<Fact, Refusal> {
    let json = serde_json::to_string(project).map_err(|error| Refusal::failed(&error))?;
    Ok(Fact { kind: KIND.to_owned(), id: project.id.to_string(), json })
}

fn read(fact: &Fact) -> Option<Project> {
    let read = serde_json::from_str(&fact.json);
    read.inspect_err(|error| tracing::error!(id = fact.id, %error, "a project cannot be read")).ok()
}

#[cfg(test)]
mod tests {
    use protocol::workspace::Role;
    use store::AuditStore as _;

    use super::*;
    use crate::testing;

    fn who() -> Identity {
        Identity { who: "key-1".to_owned(), role: Role::Write, member: None }
    }

    fn create(dir: &str) -> ClientMessage {
        ClientMessage::CreateProject(CreateProject {
            name: "warren".to_owned(),
            working_dir: dir.to_owned(),
            env: BTreeMap::from([("PORT".to_owned(), "1".to_owned())]),
            run_as_user: None,
        })
    }

    #[tokio::test]
    async fn a_project_is_made_changed_kept_and_removed() {
        let place = testing::Place::new();
        let workspace = place.start().await;
        let shared = &workspace.0;
        let dir = place.dir.path().to_str().unwrap();
        let answer = async |message| shared.projects.answer(shared, &who(), message).await;
        let Ok(ServerMessage::ProjectSaved(saved)) = answer(create(dir)).await else { panic!() };
        let id = saved.project.id;
        let update = UpdateProject {
            project_id: id,
            name: Some("other".to_owned()),
            working_dir: None,
            run_as_user: Some(String::new()),
            env: None,
        };
        answer(ClientMessage::UpdateProject(update)).await.unwrap();
        workspace.shut_down().await;
        drop(workspace);
        let workspace = place.start().await;
        let projects = &workspace.0.projects;
        let kept = projects.get(id).unwrap();
        assert_eq!((&*kept.name, &*kept.working_dir, kept.env.len()), ("other", dir, 1));
        assert_eq!(projects.place(id).unwrap().dir, place.dir.path());
        let delete = ClientMessage::DeleteProject(OfProject { project_id: id });
        projects.answer(&workspace.0, &who(), delete.clone()).await.unwrap();
        let again = projects.answer(&workspace.0, &who(), delete).await;
        assert!(matches!(again, Err(Refusal::UnknownProject(unknown)) if unknown == id));
        assert!(projects.list().is_empty());
        workspace.shut_down().await;
    }

    #[tokio::test]
    async fn one_that_could_not_be_used_is_refused_and_not_kept() {
        let place = testing::Place::new();
        let workspace = place.start().await;
        let shared = &workspace.0;
        for dir in ["src", "/no/such/directory", "/etc/passwd"] {
            let refused = shared.projects.answer(shared, &who(), create(dir)).await.unwrap_err();
            assert!(refused.to_string().contains(dir), "{refused}");
        }
        // What is noted is written by a thread, and what cannot be written is lost.
        shared.audit.flush();
        let noted = place.store.actions(9).unwrap();
        assert!(noted.iter().all(|it| it.what == "project.create" && it.outcome != "done"));
        assert_eq!(noted.len(), 3);
        place.store.fail_writes(true);
        let unkept = shared.projects.answer(shared, &who(), create("/")).await;
        assert!(matches!(unkept, Err(Refusal::Store(_))));
        assert!(shared.projects.list().is_empty());
        place.store.fail_writes(false);
        workspace.shut_down().await;
    }
}
