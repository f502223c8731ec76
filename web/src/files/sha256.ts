import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";

/** A SHA-256 of bytes that come in pieces. Browsers have one only for whole texts, and only over https. */
export class Sha256 {
  private readonly hash = sha256.create();

  update(bytes: Uint8Array): this {
    this.hash.update(bytes);
    return this;
  }

  /** The digest of all bytes, in lower-case hex. Nothing may follow. */
  hex(): string {
    return bytesToHex(this.hash.digest());
  }
}

/** The SHA-256 of a text's bytes. */
export function sha256Of(text: string): string {
  return new Sha256().update(new TextEncoder().encode(text)).hex();
}
