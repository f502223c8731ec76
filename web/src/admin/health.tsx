import { useState } from "preact/hooks";
import { stats } from "../api/admin";
import { callJson } from "../api/call";
import { usePolled } from "../live/polled";
import { copyText } from "../parts/copy";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { factsOf, healthOf, reportOf, type ServerHealth } from "./health_facts";
import { LogPart } from "./log";
import type { LogLine } from "./answers";

const health = async (signal: AbortSignal) => {
  const [told, counted] = await Promise.all([callJson<unknown>("health", { signal }), stats(signal)]);
  return healthOf(told, counted);
};

/** How the server is, and what its log says. */
export function HealthPart() {
  const { value, error } = usePolled(health, 3000);
  const [lines, setLines] = useState<LogLine[]>([]);
  return (
    <>
      <section aria-labelledby="health-title">
        <div class="section-head">
          <h2 id="health-title">Health</h2>
          <button type="button" class="button" disabled={!value} onClick={() => value && void copyReport(value, lines)}><Icon name="copy" /> Copy for a bug report</button>
        </div>
        {error && <p class="notice error" role="alert"><Icon name="warn" /><span>{error.message}</span></p>}
        {!value && !error && <p class="card empty muted" role="status">Asking the server…</p>}
        {value && <Facts of={value} />}
      </section>
      <LogPart onLines={setLines} />
    </>
  );
}

async function copyReport(health: ServerHealth, lines: LogLine[]): Promise<void> {
  const copied = await copyText(reportOf(health, lines, navigator.userAgent));
  if (copied) toast("Copied. The lines of the log may hold names and addresses: read them before you pass them on.");
  else toast("The browser did not allow copying: select the text and copy it by hand.", "error");
}

function Facts({ of: health }: { of: ServerHealth }) {
  return (
    <>
      {health.degraded && <p class="notice error" role="alert"><Icon name="warn" /><span>{health.degraded}</span></p>}
      <dl class="card health-facts">
        {factsOf(health).map(([name, text]) => <div key={name}><dt>{name}</dt><dd>{text}</dd></div>)}
      </dl>
    </>
  );
}
