import { address, serverAddress } from "../api/address";
import type { Room } from "../api/rooms";
import { guestAddress } from "../guest/code";
import { CodeBlock } from "../markdown/view";
import { CopyButton } from "../parts/copy";
import { Dialog } from "../parts/dialog";
import { Share } from "../parts/share";

/** A room that somebody is invited to; with its host's token when it has just been made. */
export interface Invited {
  room: Room;
  hostToken?: string;
}

/** How a friend gets into a room: by a link in a browser, or with a machine that lends models. */
export function Invitation({ invited, onClose }: { invited: Invited | null; onClose: () => void }) {
  const title = invited ? `Invite to ${invited.room.name}` : "Invite";
  return (
    <Dialog open={invited !== null} onClose={onClose} label={title} title={title}>
      {invited && <Ways invited={invited} />}
    </Dialog>
  );
}

function Ways({ invited: { room, hostToken } }: { invited: Invited }) {
  const code = room.spokenCode ?? room.code;
  return (
    <>
      <p>Say <b class="spoken-code">{code}</b>, or give this link: it opens the room in a browser, and nothing else of the server.{room.passwordProtected && " The password is asked for."}</p>
      <Share address={guestAddress(address("."), room.code)} what="link" />
      <h3>To lend a model there</h3>
      <CodeBlock language="sh" text={`warren room join ${code} --server ${serverAddress()}`} />
      {hostToken && (
        <>
          <p class="muted small">The room's host token, which closes and changes it, is shown now and never again:</p>
          <div class="share-address small"><code>{hostToken}</code><CopyButton text={hostToken} what="host token" /></div>
        </>
      )}
    </>
  );
}
