import { useRef, useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { askProjects, type Project } from "../files/connection";
import { mayWork } from "../live/state";
import { Icon } from "../parts/icon";
import { go } from "../route";
import { sessionOf } from "../workspace/protocol";
import { tell } from "../workspace/words";
import { ChangeList, focusChange } from "./change_list";
import { ShownChange } from "./shown_change";
import { onStepKey, stepTo } from "./steps";
import { isSameChange, wordsOfBranch, type Change, type Status } from "./status";
import { useStatus } from "./use_status";
import "../style/git.css";

/** Starts the shell of the project's user. */
const SHELL = 'exec "${SHELL:-/bin/sh}"';

/** What changed in a project since its last commit. The panel looks; agents and terminals do the rest. */
export function GitPanel({ project }: { project: Project }) {
  const { status, trouble, isAsking, refresh } = useStatus(project.id);
  const [chosen, setChosen] = useState<Change | null>(null);
  const list = useRef<HTMLDivElement>(null);
  const back = () => {
    setChosen(null);
    requestAnimationFrame(() => focusChange(list.current, chosen));
  };
  if (!status) return <p class="git-plain card empty muted" role={trouble ? "alert" : "status"}>{trouble || "Asking git…"} {trouble && <Again onClick={refresh} />}</p>;
  if (!status.isRepository) return <NoRepository onRefresh={refresh} />;
  const shown = chosen && nowOf(status, chosen);
  const steps = { toFile: (by: number) => setChosen(neighbour(status, shown, by)), toPlace: (by: number) => stepTo(list.current?.parentElement?.querySelector<HTMLElement>(".git-scroll"), by) };
  return (
    <section class={`git${shown ? " showing" : ""}`} aria-label={`Changes of ${project.name}`} onKeyDown={(event) => onStepKey(event, steps)}>
      <div class="git-side" ref={list}>
        <Branch status={status} isAsking={isAsking} onRefresh={refresh} />
        {trouble && <p class="notice error" role="alert"><Icon name="warn" /><span>{trouble} What is shown is older.</span></p>}
        <ChangeList status={status} chosen={shown} onChoose={setChosen} />
        <Foot project={project} />
      </div>
      <div class="git-shown">
        {shown
          ? <ShownChange key={`${shown.area} ${shown.path}`} project={project.id} change={shown} at={status} onBack={back} onChoose={setChosen} />
          : <p class="empty muted">{status.changes.length ? "Choose a file to see what changed in it." : "Nothing changed since the last commit."}</p>}
      </div>
    </section>
  );
}

/** The chosen change as it is now. One that is no more stays shown as long as its file changes elsewhere, such as after it was staged. */
function nowOf({ changes }: Status, chosen: Change): Change | null {
  if (changes.some((each) => isWithin(chosen, each))) return chosen;
  return changes.find((each) => isSameChange(each, chosen)) ?? changes.find(({ path }) => path === chosen.path) ?? null;
}

function neighbour({ changes }: Status, shown: Change | null, by: number): Change | null {
  const at = shown ? changes.findIndex((each) => isSameChange(each, shown) || isWithin(shown, each)) : -1;
  return changes[Math.max(0, Math.min(changes.length - 1, at + by))] ?? null;
}

/** Whether a file is in a new folder. */
function isWithin(file: Change, folder: Change): boolean {
  return file.area === "untracked" && folder.area === "untracked" && folder.path.endsWith("/") && file.path !== folder.path && file.path.startsWith(folder.path);
}

function Branch({ status, isAsking, onRefresh }: { status: Status; isAsking: boolean; onRefresh: () => void }) {
  return (
    <div class="git-branch">
      <Icon name="branch" />
      <span class="git-branch-words">
        <b>{status.branch ?? "no branch"}</b>
        <span class="muted small">{status.branch ? wordsOfBranch(status) : "the head is at a commit"}</span>
      </span>
      <button type="button" class="icon-button" aria-label="Look again" title="Look again" aria-busy={isAsking} onClick={onRefresh}><Icon name="again" /></button>
    </div>
  );
}

function NoRepository({ onRefresh }: { onRefresh: () => void }) {
  return <div class="git-plain card empty muted" role="status"><p>This project's folder is in no git repository, so there are no changes to show. <code>git init</code> in a terminal makes it one.</p><p class="workspace-sign-in"><Again onClick={onRefresh} /></p></div>;
}

function Again({ onClick }: { onClick: () => void }) {
  return <button type="button" class="button small" onClick={onClick}>Look again</button>;
}

function Foot({ project }: { project: Project }) {
  const [isBusy, setIsBusy] = useState(false);
  const open = async () => {
    setIsBusy(true);
    try {
      await openTerminal(project);
    } catch (thrown) {
      tell(asApiError(thrown));
      setIsBusy(false);
    }
  };
  return (
    <div class="git-foot">
      <p class="muted small">This page looks only. Agents and terminals stage and commit.</p>
      {mayWork.value && <button type="button" class="button small" disabled={isBusy} onClick={() => void open()}><Icon name="terminal" /> Terminal in this folder</button>}
    </div>
  );
}

async function openTerminal(project: Project): Promise<void> {
  const answer = await askProjects({ type: "open_terminal", project_id: project.id, working_dir: null, command: "sh", args: ["-c", SHELL], name: project.name }, "terminal_opened");
  const session = sessionOf(answer["session"]);
  if (session) go({ page: "workspace", ids: [session.id] });
}
