import { useEffect, useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { ago } from "../live/words";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { linkOptions, sessions } from "../workspace/hub";
import { Link } from "../workspace/link";
import { lettersOf, memberName, type Letter } from "./team";

/** So many messages are shown, the newest; the server's answer has 500 at most. */
const SHOWN = 200;

/** How often the inbox is looked at when nothing is told, in milliseconds. */
const LOOK_MS = 5000;

interface InboxProps {
  team: string;
  /** Whose inbox; `null`: none is open. */
  member: string | null;
  onClose: () => void;
}

/** The messages that a member of a team was sent. */
export function InboxDialog({ team, member, onClose }: InboxProps) {
  const title = member ? `Inbox of ${nameOf(member)}` : "Inbox";
  return <Dialog open={member !== null} onClose={onClose} label={title} title={title} class="wide-dialog">{member && <Inbox team={team} member={member} />}</Dialog>;
}

function nameOf(id: string): string {
  return memberName(id, sessions.value?.find((each) => each.id === id));
}

function Inbox({ team, member }: { team: string; member: string }) {
  const { letters, trouble } = useInbox(team, member);
  return (
    <>
      {trouble && <p class="notice error" role="alert"><Icon name="warn" /><span>{trouble}</span></p>}
      {!letters && !trouble && <p class="muted" role="status">Looking into the inbox…</p>}
      {letters?.length === 0 && <p class="muted">No message was sent to it yet.</p>}
      {letters && letters.length > 0 && <ol class="inbox" aria-label="Messages" tabIndex={0}>{letters.slice(-SHOWN).reverse().map((letter) => <LetterView key={letter.seq} letter={letter} />)}</ol>}
      {letters && letters.length > SHOWN && <p class="muted small">The newest {SHOWN} of {letters.length}.</p>}
    </>
  );
}

function LetterView({ letter: { from, text, at } }: { letter: Letter }) {
  return (
    <li>
      <p class="small"><b>{nameOf(from)}</b> <span class="muted">{ago(at, Date.now())}</span></p>
      <p class="letter">{text}</p>
    </li>
  );
}

/** An inbox as it is, by a connection that follows its member: messages are told to those who do. Nothing in it counts as read. */
function useInbox(team: string, member: string): { letters: Letter[] | null; trouble: string } {
  const [letters, setLetters] = useState<Letter[] | null>(null);
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    const look = () => {
      if (!link.isOpen || document.visibilityState === "hidden") return;
      link.ask({ type: "get_team_inbox", team_id: team, session_id: member, since_seq: null }, "team_inbox").then(
        (message) => { setLetters(lettersOf(message)); setTrouble(""); },
        (thrown) => link.isOpen && setTrouble(asApiError(thrown).message),
      );
    };
    const follow = () => {
      const session = sessions.value?.find(({ id }) => id === member);
      if (session) link.send({ type: "attach", session_id: member, after_seq: session.lastSeq });
      look();
    };
    const link = new Link({ ...linkOptions(), onOpen: follow, onMessage: ({ type }) => type === "team_message" && look() });
    const timer = setInterval(look, LOOK_MS);
    link.start();
    return () => { clearInterval(timer); link.stop(); };
  }, [team, member]);
  return { letters, trouble };
}
