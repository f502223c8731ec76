import { useState } from "preact/hooks";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { go } from "../route";
import { ask } from "../workspace/hub";
import { tell } from "../workspace/words";
import type { Team } from "./team";
import { removeTeam } from "./teams";

/** A button that deletes a team, once that was asked. */
export function DeleteTeamButton({ team }: { team: Team }) {
  const [asking, setAsking] = useState(false);
  const remove = async () => {
    setAsking(false);
    try {
      await ask({ type: "delete_team", team_id: team.id }, "team_deleted");
      removeTeam(team.id);
      toast(`${team.name} is deleted.`);
      go({ page: "workspace", ids: [], tab: "teams" });
    } catch (thrown) {
      tell(thrown);
    }
  };
  const label = `Delete ${team.name}`;
  const whose = team.workers.length === 0 ? "the session of its leader" : `the sessions of its leader and of its ${team.workers.length === 1 ? "worker" : `${team.workers.length} workers`}`;
  return (
    <>
      <button type="button" class="icon-button" aria-label={label} title={label} onClick={() => setAsking(true)}><Icon name="trash" /></button>
      <Dialog open={asking} onClose={() => setAsking(false)} label={label} title={`${label}?`}>
        <p class="wrapping">Its messages and results are deleted, and {whose}{team.workers.length === 0 ? " is" : " are"} ended, whatever happens there now. That cannot be taken back.</p>
        <div class="dialog-foot">
          <button type="button" class="button" onClick={() => setAsking(false)}>Keep it</button>
          <button type="button" class="button primary" onClick={() => void remove()}>Delete it</button>
        </div>
      </Dialog>
    </>
  );
}
