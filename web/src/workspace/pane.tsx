import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { openFolderAsProject } from "../files/open_folder";
import { mayWork } from "../live/state";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { Later } from "../parts/later";
import { go, hrefOf } from "../route";
import { AgentView } from "./agent/view";
import { asking, sessions } from "./hub";
import { KillButton } from "./kill";
import { MoreButton } from "./more";
import type { Session } from "./protocol";
import { kindOf, nodeOf, stateOf, titleOf } from "./words";

/** So many sessions are offered to be shown beside another. */
const MAX_BESIDE = 200;

interface PaneProps {
  id: string;
  /** The sessions that are shown beside it. */
  others: string[];
}

/** One session that is opened. */
export function Pane({ id, others }: PaneProps) {
  const session = sessions.value?.find((each) => each.id === id);
  const close = () => go({ page: "workspace", ids: others });
  if (!session) return <Gone onClose={close} />;
  return (
    <section class="pane" aria-label={titleOf(session)}>
      <Head of={session} others={others} onClose={close} />
      {session.kind === "agent" ? <AgentView session={session} /> : <TerminalLater session={session} />}
    </section>
  );
}

/** The terminal is large: it is loaded with the first one that is opened. */
function TerminalLater({ session }: { session: Session }) {
  return <Later of={loadTerminal} props={{ session }} />;
}

const loadTerminal = () => import("./terminal/view").then(({ TerminalView }) => TerminalView);

function Gone({ onClose }: { onClose: () => void }) {
  return (
    <section class="pane" aria-label="Session">
      <p class="card empty pane-gone">There is no such session any more. <button type="button" class="button small" onClick={onClose}>Back</button></p>
    </section>
  );
}

interface HeadProps {
  of: Session;
  others: string[];
  onClose: () => void;
}

function Head({ of: session, others, onClose }: HeadProps) {
  const { words, look } = stateOf(session, asking.value.has(session.id));
  const node = nodeOf(session);
  return (
    <header class="pane-head">
      <button type="button" class="icon-button" aria-label={others.length ? `Close the view of ${titleOf(session)}` : "Back to the sessions"} onClick={onClose}><Icon name={others.length ? "close" : "left"} /></button>
      <h1 class="pane-title">{titleOf(session)}</h1>
      <span class="muted small pane-about">{kindOf(session)}{node && ` · ${node}`} · {session.directory}</span>
      <span class={`session-state ${look}`}><span class={`dot ${look}`} aria-hidden="true" />{words}</span>
      {!others.length && <Beside id={session.id} />}
      <FilesButton of={session} />
      {mayWork.value && <MoreButton of={session} />}
      {mayWork.value && <KillButton of={session} onKilled={onClose} />}
    </header>
  );
}

/** Shows the files of the folder that the session works in. */
function FilesButton({ of: session }: { of: Session }) {
  if (!session.project && !session.directory) return null;
  const open = () => (session.project ? go({ page: "files", project: session.project }) : void openFolderAsProject(session.directory, session.node));
  return <button type="button" class="icon-button" aria-label="Files of its folder" title="Files of its folder" onClick={open}><Icon name="folder" /></button>;
}

/** Opens another session beside this one, where the window is wide enough. */
function Beside({ id }: { id: string }) {
  const [choosing, setChoosing] = useState(false);
  const others = (sessions.value ?? []).filter((each) => each.id !== id && !each.hidden).slice(0, MAX_BESIDE);
  if (!others.length) return null;
  return (
    <>
      <button type="button" class="icon-button wide-only" aria-label="Show another beside it" title="Show another beside it" onClick={() => setChoosing(true)}><Icon name="columns" /></button>
      <Dialog open={choosing} onClose={() => setChoosing(false)} label="Show another session beside it" title="Beside it">
        <ul class="beside-list">{others.map((each) => <BesideLink key={each.id} id={id} of={each}>{titleOf(each)} <span class="muted small">{kindOf(each)}</span></BesideLink>)}</ul>
      </Dialog>
    </>
  );
}

function BesideLink({ id, of, children }: { id: string; of: Session; children: ComponentChildren }) {
  return <li><a href={hrefOf({ page: "workspace", ids: [id, of.id] })}>{children}</a></li>;
}
