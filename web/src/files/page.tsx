import { openSignIn } from "../frame/sign_in_dialog";
import { access } from "../live/state";
import { Icon } from "../parts/icon";
import { hrefOf, route } from "../route";
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
  if ((access.value?.workspace ?? "no") === "no") return <NoAccess />;
  if (linkStatus.value.state === "refused") return <Refused />;
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

function NoAccess() {
  const open = access.value?.by === "open";
  return (
    <div class="page">
      <h1>Files</h1>
      <div class="card empty">
        <p>{open ? "Files are for those who are signed in, since they may read and write whatever the server's user may." : "Your key is not for the workspace. It needs a scope such as workspace:write."}</p>
        {open && <p class="workspace-sign-in"><button type="button" class="button primary" onClick={openSignIn}>Sign in to the files</button></p>}
      </div>
    </div>
  );
}

function Refused() {
  return (
    <div class="page">
      <h1>Files</h1>
      <div class="card empty" role="alert">
        <p>{linkStatus.value.words}</p>
        <p class="workspace-sign-in"><button type="button" class="button" onClick={retryProjects}>Try again</button></p>
      </div>
    </div>
  );
}
