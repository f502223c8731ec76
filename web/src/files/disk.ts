import { asApiError } from "../api/errors";
import type { FileVersion } from "../api/generated";
import type { Unsure } from "../api/types";
import { isObject, numberOf, textOf, type Answer, type ClientMessage, type Message } from "../workspace/protocol";
import type { Ask } from "./explorer";
import { randomId } from "./upload";

/** A text as the server has it. */
export interface Told {
  text: string;
  sha256: string;
}

/** A file as it is on the server's disk. */
export class DiskFile {
  constructor(private readonly project: string, private readonly path: () => string, private readonly ask: Ask) {}

  /** Its text; `null` if there is no such file. */
  async text(): Promise<Told | null> {
    try {
      const answer = await this.ask({ type: "read_project_file", project_id: this.project, path: this.path() }, "project_file_content");
      return { text: textOf(answer["content"]), sha256: textOf(answer["sha256"]) };
    } catch (thrown) {
      if (!isMissing(asApiError(thrown).message)) throw thrown;
      return null;
    }
  }

  /** How large it is, and which version; the latter is empty while another change would not be seen in it. */
  async look(): Promise<{ size: number; version: string }> {
    const request: ClientMessage = { type: "read_project_file_chunk", request_id: randomId(), project_id: this.project, path: this.path(), offset: 0, len: 0 };
    const answer = await this.ask(request, "project_file_chunk");
    return { size: numberOf(answer["total_size"]) ?? 0, version: versionOf(answer) };
  }

  /** Writes a text in the place of the one with this digest; the answer says whether it was that one. */
  write(text: string, base: string | null): Promise<Message> {
    const message: ClientMessage = { type: "write_project_file", project_id: this.project, path: this.path(), content: text, base_sha256: base };
    return this.ask(message, "project_file_saved", "project_file_write_conflict");
  }
}

/** Whether an error means that there is no such file. */
export function isMissing(words: string): boolean {
  return /no such file|directory of that path does not exist/.test(words);
}

function versionOf(message: Answer<"project_file_chunk">): string {
  const version: Unsure<FileVersion> = isObject<FileVersion>(message["version"]) ? message["version"] : {};
  return version["settled"] === true ? `${textOf(version["file"])} ${textOf(version["changed"])}` : "";
}
