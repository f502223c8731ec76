//! Projects: working directories with a name, a user and an environment.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use protocol::workspace::{
    Project, ProjectId, ServerMessage,
    client::{CreateProject, OfProject, ProjectSaved, UpdateProject},
};
use store::{Change, Fact, StoreError, WorkspaceStore};

use crate::{
    audit::Audit,
    events::Events,
    refusal::{Refusal, blocking},
    settings::NodeSlot,
    users,
};

/// The kind of these facts in the store.
pub(crate) const KIND: &str = "project";
const MOST: usize = 4096;

/// The projects of this machine.
pub struct Projects {
    run_as: Vec<String>,
    store: Arc<dyn WorkspaceStore>,
    audit: Arc<Audit>,
    events: Events,
    node: NodeSlot,
    known: Mutex<BTreeMap<ProjectId, Project>>,
    /// Held while a project is changed in the store, so that changes reach the store in their
    /// order.
    changing: tokio::sync::Mutex<()>,
}

/// The folder of a project, and the user who accesses it.
#[derive(Debug, Clone)]
pub struct ProjectFolder {
    /// The folder.
    pub dir: PathBuf,
    /// The user; `None`: the daemon's own.
    pub user: Option<process::User>,
}

impl Projects {
    /// Without any projects yet. Sessions of projects may run as the users `run_as`.
    pub(crate) fn new(
        run_as: Vec<String>,
        store: Arc<dyn WorkspaceStore>,
        audit: Arc<Audit>,
        events: Events,
        node: NodeSlot,
    ) -> Self {
        let (known, changing) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { run_as, store, audit, events, node, known, changing }
    }

    /// Loads the stored projects. A project that cannot be read stays in the store, and the log
    /// says so.
    pub(crate) fn restore(&self) -> Result<(), StoreError> {
        let facts = self.store.load_facts(KIND)?;
        let projects = facts.into_iter().filter_map(|fact| read(&fact));
        self.lock().extend(projects.map(|project| (project.id, project)));
        Ok(())
    }

    /// All projects, sorted by name.
    pub fn list(&self) -> Vec<Project> {
        let projects: Vec<Project> = self.lock().values().cloned().collect();
        let mut projects: Vec<_> = projects.into_iter().map(|one| self.shown(one)).collect();
        projects.sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
        projects
    }

    /// The node id of this machine.
    pub(crate) fn node(&self) -> &NodeSlot {
        &self.node
    }

    /// The users that sessions and projects may run as.
    pub(crate) fn run_as(&self) -> &[String] {
        &self.run_as
    }

    /// A project.
    ///
    /// # Errors
    /// [`Refusal::UnknownProject`].
    pub fn get(&self, id: ProjectId) -> Result<Project, Refusal> {
        let project = self.lock().get(&id).cloned().ok_or(Refusal::UnknownProject(id))?;
        Ok(self.shown(project))
    }

    /// Like [`folder`](Self::folder), on a thread that may block.
    pub async fn folder_soon(self: &Arc<Self>, id: ProjectId) -> Result<ProjectFolder, Refusal> {
        let projects = Arc::clone(self);
        blocking(move || projects.folder(id)).await
    }

    /// The folder and the user of a project. The user must still be allowed. The call may
    /// block, since the lookup of the user may ask a directory server.
    pub fn folder(&self, id: ProjectId) -> Result<ProjectFolder, Refusal> {
        let project = self.get(id)?;
        let user = users::find(&self.run_as, project.run_as_user.as_deref())?;
        Ok(ProjectFolder { dir: project.working_dir.into(), user })
    }

    /// Makes a project for the caller `who`, and announces it.
    ///
    /// # Errors
    /// When there are too many, its folder or its user cannot be used, or it cannot be stored.
    pub async fn create(&self, who: &str, create: CreateProject) -> Result<ServerMessage, Refusal> {
        let target = create.working_dir.clone();
        let done = self.do_create(who, create).await;
        self.note_refusal(who, "project.create", &target, &done);
        done
    }

    async fn do_create(&self, who: &str, create: CreateProject) -> Result<ServerMessage, Refusal> {
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
        // Held since the check, so that two new projects do not both take the last place.
        let _turn = self.changing.lock().await;
        self.check_room()?;
        self.save(who, "project.create", project).await
    }

    /// Changes a project for the caller `who`, and announces it.
    ///
    /// # Errors
    /// When there is no such project, its folder or its user cannot be used, or it cannot be stored.
    pub async fn update(&self, who: &str, update: UpdateProject) -> Result<ServerMessage, Refusal> {
        let target = update.project_id.to_string();
        let done = self.do_update(who, update).await;
        self.note_refusal(who, "project.update", &target, &done);
        done
    }

    async fn do_update(&self, who: &str, update: UpdateProject) -> Result<ServerMessage, Refusal> {
        // Held since the project is read, so that two changes do not undo each other.
        let _turn = self.changing.lock().await;
        let project = changed(self.get(update.project_id)?, update);
        self.save(who, "project.update", project).await
    }

    /// Stores and announces a project of this machine that its own store has lost, as the other members
    /// know it. Its folder and its user are checked when they are used.
    ///
    /// # Errors
    /// When there are too many projects, or it cannot be stored.
    pub async fn take_back(&self, who: &str, project: Project) -> Result<(), Refusal> {
        let _turn = self.changing.lock().await;
        self.check_room()?;
        self.keep(who, "project.take_back", Project { node_id: None, ..project }).await?;
        Ok(())
    }

    /// Forgets a project for the caller `who`. Its folder and its sessions stay.
    ///
    /// # Errors
    /// When there is no such project, or the store fails.
    pub async fn delete(&self, who: &str, delete: OfProject) -> Result<ServerMessage, Refusal> {
        let target = delete.project_id.to_string();
        let done = self.do_delete(who, delete).await;
        self.note_refusal(who, "project.delete", &target, &done);
        done
    }

    async fn do_delete(&self, who: &str, delete: OfProject) -> Result<ServerMessage, Refusal> {
        let _turn = self.changing.lock().await;
        let id = self.get(delete.project_id)?.id;
        keep(&self.store, Change::Forget { kind: KIND.to_owned(), id: id.to_string() }).await?;
        self.lock().remove(&id);
        self.audit.note(who, "project.delete", &id.to_string(), "done");
        let removed = ServerMessage::ProjectRemoved(delete);
        self.events.tell(removed.clone());
        Ok(removed)
    }

    /// Checks that a project can be used, then stores and announces it.
    async fn save(
        &self,
        who: &str,
        what: &'static str,
        mut project: Project,
    ) -> Result<ServerMessage, Refusal> {
        let user = users::user(&self.run_as, project.run_as_user.as_deref()).await?;
        let dir = working_dir(&project.working_dir, user.as_ref()).await?;
        project.working_dir = path_text(&dir)?;
        self.keep(who, what, project).await
    }

    /// Stores and announces a project.
    async fn keep(
        &self,
        who: &str,
        what: &'static str,
        project: Project,
    ) -> Result<ServerMessage, Refusal> {
        keep(&self.store, Change::Keep(fact(&project)?)).await?;
        // After the store: a project that cannot be stored must not be listed.
        self.lock().insert(project.id, project.clone());
        self.audit.note(who, what, &project.id.to_string(), "done");
        let project = self.shown(project);
        let saved = ServerMessage::ProjectSaved(ProjectSaved { project });
        self.events.tell(saved.clone());
        Ok(saved)
    }

    fn check_room(&self) -> Result<(), Refusal> {
        match self.lock().len() {
            MOST.. => Err(Refusal::TooMany { what: "projects", most: MOST }),
            _ => Ok(()),
        }
    }

    /// Notes a refused request. A request that succeeded is noted already, with the project's id.
    fn note_refusal(
        &self,
        who: &str,
        what: &'static str,
        target: &str,
        done: &Result<ServerMessage, Refusal>,
    ) {
        if let Err(refusal) = done {
            self.audit.note(who, what, target, &refusal.to_string());
        }
    }

    /// The project in the clients' form. The node is not stored with it: it is this machine.
    fn shown(&self, project: Project) -> Project {
        Project { node_id: self.node.get(), ..project }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ProjectId, Project>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The full path of a working directory, which must begin with `/` or `~`, and exist.
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

/// A path as text, in the form of messages.
///
/// # Errors
/// [`Refusal::Invalid`] if the path is not UTF-8.
pub fn path_text(path: &Path) -> Result<String, Refusal> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Refusal::Invalid(format!("{} is not UTF-8", path.display())))
}

fn changed(project: Project, update: UpdateProject) -> Project {
    let run_as_user = match update.run_as_user {
        // An empty name removes the user; without a name the user stays.
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
    blocking(move || store.change_facts(&[change])).await
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
    use store::AuditStore as _;

    use super::*;
    use crate::testing;

    const WHO: &str = "key-1";

    fn create(dir: &str) -> CreateProject {
        CreateProject {
            name: "warren".to_owned(),
            working_dir: dir.to_owned(),
            env: BTreeMap::from([("PORT".to_owned(), "1".to_owned())]),
            run_as_user: None,
        }
    }

    #[tokio::test]
    async fn a_project_is_made_changed_kept_and_removed() {
        let site = testing::Site::new();
        let workspace = site.start().await;
        let projects = &workspace.projects;
        let dir = site.dir.path().to_str().unwrap();
        let ServerMessage::ProjectSaved(saved) = projects.create(WHO, create(dir)).await.unwrap()
        else {
            panic!()
        };
        let id = saved.project.id;
        let update = UpdateProject {
            project_id: id,
            name: Some("other".to_owned()),
            working_dir: None,
            run_as_user: Some(String::new()),
            env: None,
        };
        projects.update(WHO, update).await.unwrap();
        workspace.shut_down().await;
        drop(workspace);
        let workspace = site.start().await;
        let projects = &workspace.projects;
        let stored = projects.get(id).unwrap();
        assert_eq!((&*stored.name, &*stored.working_dir, stored.env.len()), ("other", dir, 1));
        assert_eq!(projects.folder(id).unwrap().dir, site.dir.path());
        projects.delete(WHO, OfProject { project_id: id }).await.unwrap();
        let second = projects.delete(WHO, OfProject { project_id: id }).await;
        assert!(matches!(second, Err(Refusal::UnknownProject(unknown)) if unknown == id));
        assert!(projects.list().is_empty());
        workspace.shut_down().await;
    }

    #[tokio::test]
    async fn an_unusable_project_is_refused_and_not_kept() {
        let site = testing::Site::new();
        let workspace = site.start().await;
        let projects = &workspace.projects;
        for dir in ["src", "/no/such/directory", "/etc/passwd"] {
            let refused = projects.create(WHO, create(dir)).await.unwrap_err();
            assert!(refused.to_string().contains(dir), "{refused}");
        }
        // Notes are written by a separate thread.
        workspace.audit.flush();
        let noted = site.store.actions(9).unwrap();
        assert!(noted.iter().all(|it| it.what == "project.create" && it.outcome != "done"));
        assert_eq!(noted.len(), 3);
        site.store.fail_writes(true);
        let unkept = projects.create(WHO, create("/")).await;
        assert!(matches!(unkept, Err(Refusal::Store(_))));
        assert!(projects.list().is_empty());
        site.store.fail_writes(false);
        workspace.shut_down().await;
    }
}
