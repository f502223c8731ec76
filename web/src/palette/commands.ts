import { leave } from "../begin";
import { openOnPhone } from "../frame/phone_dialog";
import { openSignIn } from "../frame/sign_in_dialog";
import { access, models, workers } from "../live/state";
import { drainWorker, refreshWorker } from "../overview/machines";
import { chatWith } from "../overview/models";
import { openNotices } from "../notify/dialog";
import { install, isInstallable } from "../offline/install";
import type { IconName } from "../parts/icon";
import { fileName, saveFile, toJson, toMarkdown } from "../play/export";
import { exportAll } from "../play/list";
import { canChat } from "../play/model_select";
import { summaries } from "../play/shelf";
import { current, isBusy, setModel, stop } from "../play/talk";
import { newOne } from "../play/toolbar";
import { go, route } from "../route";
import { setTheme } from "../theme";

/** Something that can be done, by its name. */
export interface Command {
  name: string;
  icon: IconName;
  /** What kind of thing it is, shown behind its name. */
  kind: string;
  run: () => void;
}

/** All that can be done now, the most likely first. */
export function commandsNow(): Command[] {
  return [...ofPages(), ...ofConversation(), ...ofModels(), ...ofMachines(), ...ofConversations(), ...ofPage()];
}

function ofPages(): Command[] {
  return [
    { name: "Overview", icon: "overview", kind: "page", run: () => go({ page: "overview" }) },
    { name: "Playground", icon: "chat", kind: "page", run: () => go({ page: "play", id: null }) },
    { name: "Rooms", icon: "room", kind: "page", run: () => go({ page: "rooms" }) },
    { name: "Workspace: terminals and agents", icon: "terminal", kind: "page", run: () => go({ page: "workspace", ids: [] }) },
    { name: "Teams of agents", icon: "team", kind: "page", run: () => go({ page: "workspace", ids: [], tab: "teams" }) },
    { name: "Ports of development servers", icon: "port", kind: "page", run: () => go({ page: "workspace", ids: [], tab: "ports" }) },
    { name: "Files and changes of projects", icon: "folder", kind: "page", run: () => go({ page: "files", project: null }) },
    ...ofAdministration(),
    { name: "New conversation", icon: "plus", kind: "playground", run: newOne },
  ];
}

function ofAdministration(): Command[] {
  if (!access.value?.admin) return [];
  return [
    { name: "Mesh: peers and transfers", icon: "mesh", kind: "page", run: () => go({ page: "mesh" }) },
    { name: "Administration: keys and sessions", icon: "shield", kind: "page", run: () => go({ page: "admin" }) },
    { name: "Configuration as it stands", icon: "sliders", kind: "page", run: () => go({ page: "admin", tab: "configuration" }) },
    { name: "Audit log", icon: "list", kind: "page", run: () => go({ page: "admin", tab: "audit" }) },
    { name: "Health of the server", icon: "check", kind: "page", run: () => go({ page: "admin", tab: "health" }) },
  ];
}

function ofConversation(): Command[] {
  const conversation = current.value;
  if (route.value.page !== "play" || !conversation.turns.length) return [];
  const { title } = conversation;
  const commands: Command[] = [
    { name: "Export this conversation as Markdown", icon: "download", kind: "playground", run: () => saveFile(fileName(title, "md"), "text/markdown", toMarkdown(conversation)) },
    { name: "Export this conversation as JSON", icon: "download", kind: "playground", run: () => saveFile(fileName(title, "json"), "application/json", toJson([conversation])) },
  ];
  if (isBusy(conversation)) commands.unshift({ name: "Stop the answer", icon: "stop", kind: "playground", run: stop });
  return commands;
}

function ofModels(): Command[] {
  const here = route.value.page === "play";
  return (models.value ?? []).filter(canChat).map(({ id }) => ({
    name: here ? `Use ${id}` : `Chat with ${id}`,
    icon: "chat",
    kind: "model",
    run: () => (here ? setModel(0, id) : chatWith(id)),
  }));
}

function ofMachines(): Command[] {
  if (!access.value?.admin) return [];
  return (workers.value ?? []).flatMap((worker): Command[] => [
    { name: `Refresh ${worker.worker_name}`, icon: "again", kind: "machine", run: () => void refreshWorker(worker) },
    { name: `Drain ${worker.worker_name}`, icon: "pause", kind: "machine", run: () => void askToDrain(worker) },
  ]);
}

async function askToDrain(worker: Parameters<typeof drainWorker>[0]): Promise<void> {
  if (confirm(`Drain ${worker.worker_name}? It gets nothing new and finishes what it has.`)) await drainWorker(worker);
}

function ofConversations(): Command[] {
  return summaries.value.map(({ id, title }) => ({ name: title, icon: "list", kind: "conversation", run: () => go({ page: "play", id }) }));
}

function ofPage(): Command[] {
  const commands: Command[] = [
    ...(isInstallable() ? [{ name: "Install Warren as an app", icon: "download", kind: "page", run: () => void install() } satisfies Command] : []),
    { name: "Notifications: what I am told of", icon: "bell", kind: "page", run: openNotices },
    { name: "Open on a phone", icon: "phone", kind: "session", run: openOnPhone },
    { name: "Theme: light", icon: "sun", kind: "page", run: () => setTheme("light") },
    { name: "Theme: dark", icon: "moon", kind: "page", run: () => setTheme("dark") },
    { name: "Theme: as the system", icon: "screen", kind: "page", run: () => setTheme("system") },
    { name: "Export all conversations", icon: "download", kind: "playground", run: () => void exportAll() },
  ];
  if (access.value?.by === "open") commands.push({ name: "Sign in", icon: "key", kind: "session", run: openSignIn });
  else commands.push({ name: "Sign out", icon: "leave", kind: "session", run: () => void leave() });
  return commands;
}
