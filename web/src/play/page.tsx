import { useEffect, useState } from "preact/hooks";
import { access, models } from "../live/state";
import { Setup } from "../overview/setup";
import { openSignIn } from "../frame/sign_in_dialog";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { readAsRoute, route } from "../route";
import { Composer } from "./composer";
import { useEscape } from "./escape";
import { Examples } from "./examples";
import { ConversationList, listShown } from "./list";
import { canChat } from "./model_select";
import { Settings } from "./settings";
import { current, currentId, hasBegun, open, setModel, startNew } from "./talk";
import { Thread } from "./thread";
import { Toolbar } from "./toolbar";

/** Conversations with models. */
export function PlayPage() {
  const [settings, setSettings] = useState(false);
  const [examples, setExamples] = useState(false);
  useAddress();
  useFirstModel();
  useEscape();
  if (!access.value?.models) return <NotForModels />;
  if (models.value?.length === 0 && !hasBegun.value) return <div class="page"><Setup /></div>;
  return (
    <div class="play">
      <Toolbar settings={settings} onSettings={() => setSettings(!settings)} onExamples={() => setExamples(true)} />
      {settings && <Settings />}
      {hasBegun.value && <Title />}
      <Thread />
      <Composer />
      <Examples open={examples} onClose={() => setExamples(false)} />
      <Dialog open={listShown.value} onClose={() => (listShown.value = false)} label="Conversations" title="Conversations" class="drawer">
        <ConversationList />
      </Dialog>
    </div>
  );
}

function Title() {
  return <h1 class="visually-hidden">{current.value.title}</h1>;
}

/** The administrator's own token asks no model from another machine: a key does both. */
function NotForModels() {
  return (
    <div class="page">
      <h1>Playground</h1>
      <section class="card hint">
        <Icon name="key" />
        <p>This token administers the server, but may not ask its models. Make a key for both, and sign in with it: <code>warren key create --name me --scope inference,admin</code></p>
        <button type="button" class="button" onClick={openSignIn}>Sign in with a key</button>
      </section>
    </div>
  );
}

/** Shows the conversation that the address names, and has the address name the one that is shown. */
function useAddress(): void {
  const to = route.value;
  const id = to.page === "play" ? to.id : null;
  useEffect(() => {
    if (to.page !== "play") return;
    if (id) void openFromAddress(id);
    else if (current.value.turns.length) startNew();
  }, [id]);
  const [shown, begun] = [currentId.value, hasBegun.value];
  useEffect(() => {
    if (begun && !id) readAsRoute({ page: "play", id: shown });
  }, [shown, begun]);
}

async function openFromAddress(id: string): Promise<void> {
  if (await open(id)) return;
  toast("This browser has no such conversation. Conversations are kept where they were held.");
  startNew();
  readAsRoute({ page: "play", id: null });
}

/** A new conversation takes the model that was used last, or the first one where that is not there. */
function useFirstModel(): void {
  const all = models.value;
  const [id, begun] = [currentId.value, hasBegun.value];
  useEffect(() => {
    const first = current.value.lanes[0];
    if (!all?.length || begun || all.some((model) => model.id === first)) return;
    setModel(0, (all.find(canChat) ?? all[0]!).id);
  }, [all, id, begun]);
}
