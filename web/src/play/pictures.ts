import type { Model } from "../api/types";
import type { Picture } from "./conversation";

/** The most pictures of one question. */
export const MAX_PICTURES = 4;

/** The largest file that is read, in bytes. */
const MAX_BYTES = 30 * 1024 * 1024;

/** The longer side of a picture that is sent, in pixels: models see no more. */
const MAX_SIDE = 1536;

/** Whether a model takes pictures; `null` when its server does not say. */
export function takesPictures(model: Model | undefined): boolean | null {
  const inputs = model?.architecture?.input_modalities;
  if (model?.capabilities?.includes("vision") || inputs?.includes("image")) return true;
  return model?.capabilities || inputs ? false : null;
}

/** Whether all of them take pictures; `null` when one of them may not. */
export function allTakePictures(models: (Model | undefined)[]): boolean | null {
  const each = models.map(takesPictures);
  return each.includes(false) ? false : each.includes(null) ? null : true;
}

/** A file as a picture of a size that models take. It throws an `Error` that says what is wrong. */
export async function pictureFrom(file: File): Promise<Picture> {
  if (!file.type.startsWith("image/")) throw new Error(`${file.name} is no picture.`);
  if (file.size > MAX_BYTES) throw new Error(`${file.name} is too large: 30 MiB at most.`);
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new Error(`${file.name} cannot be read as a picture.`);
  });
  try {
    return { url: drawn(bitmap), name: file.name || "picture" };
  } finally {
    bitmap.close();
  }
}

function drawn(bitmap: ImageBitmap): string {
  const scale = Math.min(1, MAX_SIDE / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d")!;
  context.fillStyle = "#fff"; // JPEG has no transparency.
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.85);
}
