/** The two tones of a chime, in hertz, how long each is, in seconds, and how loud. */
const TONES = [660, 880];
const SECONDS = 0.14;
const LOUDNESS = 0.08;

let context: AudioContext | null = null;

/** A short, soft chime. Browsers allow it once the person has done something in the page. */
export function chime(): void {
  if (typeof AudioContext === "undefined") return;
  context ??= new AudioContext();
  const { currentTime } = context;
  TONES.forEach((tone, at) => play(context!, tone, currentTime + at * SECONDS));
  context.resume().catch(() => undefined);
}

function play(on: AudioContext, tone: number, from: number): void {
  const [source, gain] = [on.createOscillator(), on.createGain()];
  source.frequency.value = tone;
  gain.gain.setValueAtTime(0, from);
  gain.gain.linearRampToValueAtTime(LOUDNESS, from + SECONDS / 4);
  gain.gain.linearRampToValueAtTime(0, from + SECONDS);
  source.connect(gain).connect(on.destination);
  source.start(from);
  source.stop(from + SECONDS);
}
