import { useState } from "preact/hooks";
import { usePolled } from "../live/polled";
import { configuration } from "./requests";
import { groupsOf, shownValue, sourceWords, type Group } from "./settings";
import type { Configuration, Setting } from "./answers";

/** How the server is set, and what set it so. Nothing can be changed here. */
export function ConfigurationPart() {
  const { value, error } = usePolled(configuration, 15_000);
  return (
    <section aria-labelledby="configuration-title">
      <h2 id="configuration-title">Configuration as it stands</h2>
      {error && <p class="card empty" role="alert">{error.status === 404 ? "This server does not tell its configuration." : error.message}</p>}
      {!value && !error && <p class="card empty muted" role="status">Reading the configuration…</p>}
      {value && error?.status !== 404 && <Settings of={value} />}
    </section>
  );
}

function Settings({ of: { file, settings } }: { of: Configuration }) {
  const [typed, setTyped] = useState("");
  const [differing, setDiffering] = useState(true);
  const groups = groupsOf(settings, typed, differing);
  return (
    <>
      <p class="muted">{file ? <>Its file is <code>{file}</code>.</> : "It was started without a file."} A change needs a new start. Secrets are never shown.</p>
      <div class="settings-choice">
        <input type="search" class="filter" aria-label="Filter settings" placeholder="Name or value" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        <label class="check"><input type="checkbox" checked={differing} onChange={(event) => setDiffering(event.currentTarget.checked)} /><span>Only what differs from the defaults</span></label>
      </div>
      {!groups.length && <p class="card empty muted" role="status">{typed.trim() ? "No setting is like that." : "Every setting has its default."}</p>}
      {groups.map((group) => <GroupTable key={group.name} group={group} />)}
    </>
  );
}

function GroupTable({ group: { name, settings } }: { group: Group }) {
  return (
    <div class="card rows">
      <h3 class="settings-group">{name}</h3>
      <dl class="setting-list" aria-label={`Settings of ${name}`}>
        {settings.map((setting) => <SettingRow key={setting.name} setting={setting} />)}
      </dl>
    </div>
  );
}

function SettingRow({ setting }: { setting: Setting }) {
  const { words, plain } = shownValue(setting);
  return (
    <div class="setting">
      <dt><code>{setting.name}</code></dt>
      <dd>
        {plain ? <span class="muted">{words}</span> : <code>{words}</code>}
        <span class="muted small">{sourceWords(setting.source)}</span>
      </dd>
    </div>
  );
}
