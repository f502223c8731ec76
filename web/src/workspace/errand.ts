import { ApiError } from "../api/errors";
import { linkOptions } from "./hub";
import { Link } from "./link";
import type { AnswerType, ClientMessage, Message } from "./protocol";

/** How long the connection for an errand may take. */
const OPEN_MS = 15_000;

/** Asks for something that takes long, over a connection of its own: whatever else is asked need not wait for it. */
export function errand(message: ClientMessage, deadlineMs: number, ...answers: AnswerType[]): Promise<Message> {
  return new Promise<Message>((resolve, reject) => {
    let asked = false;
    const end = (then: () => void) => {
      clearTimeout(opening);
      link.stop();
      then();
    };
    const onOpen = () => {
      // On another connection it would be asked twice.
      if (asked) return;
      asked = true;
      clearTimeout(opening);
      link.askWithin(deadlineMs, message, ...answers).then((answer) => end(() => resolve(answer)), (thrown: unknown) => end(() => reject(thrown)));
    };
    const link = new Link({ ...linkOptions(), onOpen, onMessage: () => {} });
    const opening = setTimeout(() => end(() => reject(new ApiError("The workspace cannot be reached now.", 0))), OPEN_MS);
    link.start();
  });
}
