import { useEffect, useRef } from "preact/hooks";
import { access, health, keepsSeries, models, points, stats, workers } from "../live/state";
import { count, short, span } from "../live/words";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { openSignIn } from "../frame/sign_in_dialog";
import { Charts } from "./charts";
import { Machines } from "./machines";
import { Models } from "./models";
import { Queues } from "./queues";
import { Requests } from "./requests";
import { Running } from "./running";
import { Setup } from "./setup";
import { UsageTable } from "./usage";

/** The server, its machines and models, and what they do now. */
export function Overview() {
  const ready = (models.value?.length ?? 0) > 0;
  useArrival();
  return (
    <div class="page overview">
      <Head />
      {models.value && !ready && <Setup />}
      {ready && <Counts />}
      {ready && points.value && (access.value?.metrics || keepsSeries.value) && <Charts />}
      <Queues />
      <Machines />
      {ready && <Models />}
      {access.value?.admin ? <ForAdministrators /> : <NotAdministrator />}
    </div>
  );
}

/** Says it when the first model is there, which somebody may have waited for. */
function useArrival(): void {
  const all = models.value;
  const wasEmpty = useRef(false);
  useEffect(() => {
    if (wasEmpty.current && all?.length) toast(`${all[0]!.id} is here. Ask it something in the playground.`);
    wasEmpty.current = all?.length === 0;
  }, [all]);
}

function Head() {
  const up = health.value?.uptime_secs;
  return (
    <div class="page-head">
      <h1>Overview</h1>
      {health.value && (
        <p class="muted">
          Warren {health.value.version}
          {up !== undefined && <> · up {span(Math.max(1, up) * 1000)}</>}
          {!!health.value.peers && <> · {count(health.value.peers, "peer")}</>}
        </p>
      )}
    </div>
  );
}

function Counts() {
  const waiting = stats.value ? Object.values(stats.value.queue_depth).reduce((a, b) => a + b, 0) : health.value?.queue_depth;
  const loaded = models.value?.filter(({ state }) => state === "loaded").length ?? 0;
  return (
    <dl class="counts">
      <Count name="Machines" value={workers.value?.length ?? health.value?.workers_connected} />
      <Count name="Models" value={models.value?.length} note={loaded ? `${loaded} in memory` : undefined} />
      <Count name="Answering" value={stats.value?.in_flight ?? health.value?.in_flight} />
      <Count name="Waiting" value={waiting} />
    </dl>
  );
}

function Count({ name, value, note }: { name: string; value: number | undefined; note?: string }) {
  return (
    <div class="count">
      <dt>{name}</dt>
      <dd>{value === undefined ? "–" : short(value)}{note && <span class="muted small"> {note}</span>}</dd>
    </div>
  );
}

function ForAdministrators() {
  return (
    <>
      <Running />
      <Requests />
      <UsageTable />
    </>
  );
}

function NotAdministrator() {
  return (
    <section class="card hint">
      <Icon name="key" />
      <p>Requests, usage and the buttons of machines are for administrators.{access.value?.by !== "open" && " What you signed in with is no administrator's."}</p>
      <button type="button" class="button" onClick={openSignIn}>Sign in as one</button>
    </section>
  );
}
