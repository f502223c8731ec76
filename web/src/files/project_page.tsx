import { useEffect, useMemo } from "preact/hooks";
import { Icon } from "../parts/icon";
import { Later } from "../parts/later";
import { Tabs } from "../parts/tabs";
import { go, hrefOf, type FilesTab } from "../route";
import { askProjects, watchProject, type Project } from "./connection";
import { Explorer } from "./explorer";
import { ExplorerPanel } from "./explorer_panel";
import { shownName } from "./names";
import { openFilesOf } from "./open_files";
import { ShownFile } from "./shown_file";
import { TransferList } from "./transfer_list";

const gitPanel = () => import("../git/panel").then(({ GitPanel }) => GitPanel);

const TABS: { value: FilesTab; name: string }[] = [
  { value: "files", name: "Files" },
  { value: "changes", name: "Changes" },
];

/** A project: its files, and what changed in them since the last commit. */
export function ProjectPage({ project, tab }: { project: Project; tab: FilesTab }) {
  useEffect(() => {
    watchProject(project.id);
    return () => watchProject(null);
  }, [project.id]);
  return (
    <div class="files-page">
      <header class="files-head">
        <a class="icon-button" href={hrefOf({ page: "files", project: null })} aria-label="All projects" title="All projects"><Icon name="left" /></a>
        <h1 class="pane-title">{shownName(project.name)}</h1>
        <span class="muted small pane-about"><bdi>{shownName(project.directory)}</bdi></span>
        <Tabs label="What is shown of the project" options={TABS} value={tab} onChange={(value) => go({ page: "files", project: project.id, tab: value })} />
      </header>
      {tab === "changes" ? <Later of={gitPanel} props={{ project }} /> : <FilesArea project={project} />}
    </div>
  );
}

function FilesArea({ project }: { project: Project }) {
  const explorer = useMemo(() => new Explorer(project.id, askProjects), [project.id]);
  const files = openFilesOf(project.id);
  useEffect(() => () => explorer.end(), [explorer]);
  useEffect(() => () => void files.keep(), [files]);
  return (
    <div class={`files-area${files.shown.value ? " showing" : ""}`}>
      <div class="files-side">
        <ExplorerPanel project={project} explorer={explorer} files={files} />
        <TransferList project={project.id} />
      </div>
      <ShownFile files={files} />
    </div>
  );
}
