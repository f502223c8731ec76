import { stats } from "../live/state";
import { count, span } from "../live/words";

/** What waits for a machine; nothing while nothing does. */
export function Queues() {
  const queues = stats.value?.queues.filter(({ depth }) => depth > 0) ?? [];
  if (!queues.length) return null;
  return (
    <section aria-labelledby="queues-title">
      <h2 id="queues-title">Waiting</h2>
      <ul class="card rows">
        {queues.map(({ scope, model, depth, oldest_secs }) => (
          <li key={`${scope}/${model}`} class="queue-row">
            <b>{model}</b>
            <span>{count(depth, "request")}</span>
            {oldest_secs !== undefined && <span class="muted">the oldest for {span(oldest_secs * 1000)}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}
