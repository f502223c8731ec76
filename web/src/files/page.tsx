import { access } from "../live/state";
import { Icon } from "../parts/icon";
import { hrefOf, route } from "../route";
import { NoAccess, Refused } from "../workspace/no_entry";
import { linkStatus, projects, retryProjects, useProjects } from "./connection";
import { ProjectList } from "./project_list";
import { ProjectPage } from "./project_page";
import "../style/workspace.css";
import "../style/files.css";
import "../style/files_dialogs.css";
import "../style/open_files.css";

/** Files of the server's folders: the projects, or one of them. */
export function FilesPage() {
  useProjects();
  if ((access.value?.workspace ?? "no") === "no") return <NoAccess title="Files" of="files" why="Files are for those who are signed in, since they may read and write whatever the server's user may." />;
  if (linkStatus.value.state === "refused") return <Refused title="Files" why={linkStatus.value.words} onRetry={retryProjects} />;
  if (route.value.page !== "files") return null;
  const { project, tab } = route.value;
  return (
    <>
      <LinkBanner />
      {project ? <OneProject id={project} tab={tab ?? "files"} /> : <ProjectList />}
    </>
  );
}

function OneProject({ id, tab }: { id: string; tab: "files" | "changes" }) {
  const project = projects.value?.find((each) => each.id === id);
  if (project) return <ProjectPage key={id} project={project} tab={tab} />;
  if (!projects.value) return <p class="entering" role="status">Looking for the project…</p>;
  return (
    <div class="page">
      <h1>Files</h1>
      <p class="card empty">There is no such project any more. <a href={hrefOf({ page: "files", project: null })}>See those that there are</a></p>
    </div>
  );
}

function LinkBanner() {
  const { words } = linkStatus.value;
  return <div class="link-banner" role="status">{words && <p class="banner bad"><Icon name="warn" /><span>{words}</span></p>}</div>;
}
