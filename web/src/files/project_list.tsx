import { useState } from "preact/hooks";
import { mayWork } from "../live/state";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { hrefOf } from "../route";
import { nodes } from "../workspace/hub";
import { askProjects, linkStatus, projects, remove, type Project } from "./connection";
import { ActionDialog } from "./entry_dialogs";
import { shownName } from "./names";
import { FolderPicker } from "./picker";

/** How many projects are shown before the rest is asked for. */
const FEW = 100;

/** The projects, and the way to a new one. */
export function ProjectList() {
  const [picking, setPicking] = useState(false);
  const all = projects.value;
  return (
    <div class="page">
      <div class="page-head workspace-head">
        <h1>Files</h1>
        {mayWork.value && all?.length !== 0 && <button type="button" class="button primary" onClick={() => setPicking(true)}><Icon name="folder" /> Open a folder</button>}
      </div>
      {!all && <p class="card empty muted" role="status">{linkStatus.value.words || "Asking for the projects…"}</p>}
      {all?.length === 0 && <Nothing onOpen={() => setPicking(true)} />}
      {all && all.length > 0 && <Rows all={all} />}
      {picking && <FolderPicker onClose={() => setPicking(false)} />}
    </div>
  );
}

function Nothing({ onOpen }: { onOpen: () => void }) {
  return (
    <div class="card empty files-nothing">
      <p>No folder is open yet. Choose one of the server's folders: its files can then be looked at, edited, uploaded and downloaded here, and agents can work in it.</p>
      {mayWork.value
        ? <p><button type="button" class="button primary" onClick={onOpen}><Icon name="folder" /> Open a folder</button></p>
        : <p class="muted">Your key may look, but open no folder. Ask whoever runs the server.</p>}
    </div>
  );
}

function Rows({ all }: { all: Project[] }) {
  const [everything, setEverything] = useState(false);
  const shown = everything ? all : all.slice(0, FEW);
  return (
    <>
      <ul class="session-list card" aria-label="Projects">{shown.map((project) => <ProjectRow key={project.id} of={project} />)}</ul>
      {shown.length < all.length && <button type="button" class="button" onClick={() => setEverything(true)}>Show all {all.length} projects</button>}
    </>
  );
}

function ProjectRow({ of: project }: { of: Project }) {
  const [asking, setAsking] = useState(false);
  const name = shownName(project.name);
  const machine = project.node && nodes.value.size > 1 ? ` · ${nodes.value.get(project.node) ?? project.node.slice(0, 8)}` : "";
  return (
    <li class="session-row">
      <a class="session-link" href={hrefOf({ page: "files", project: project.id })}>
        <Icon name="folder" />
        <span class="session-words"><b>{name}</b><span class="muted small"><bdi>{shownName(project.directory)}</bdi>{machine}</span></span>
      </a>
      {mayWork.value && <button type="button" class="icon-button" aria-label={`Remove ${name} from the list`} title="Remove from the list" onClick={() => setAsking(true)}><Icon name="close" /></button>}
      {asking && <RemoveDialog project={project} onClose={() => setAsking(false)} />}
    </li>
  );
}

function RemoveDialog({ project, onClose }: { project: Project; onClose: () => void }) {
  const name = shownName(project.name);
  const act = async () => {
    await askProjects({ type: "delete_project", project_id: project.id }, "project_removed");
    remove(project.id);
    toast(`${name} is not in the list any more. Its files are where they were.`);
  };
  return (
    <ActionDialog title={`Remove ${name} from the list?`} button="Remove it" isReady act={act} onClose={onClose}>
      <p class="wrapping">No file is deleted: <b>{shownName(project.directory)}</b> stays as it is, and can be opened again.</p>
    </ActionDialog>
  );
}
