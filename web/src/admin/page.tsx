import { Keys } from "./keys";
import { Sessions } from "./sessions";

/** Who may use the server: keys, and the sessions of this page. */
export function AdminPage() {
  return (
    <div class="page">
      <h1>Administration</h1>
      <Keys />
      <Sessions />
    </div>
  );
}
