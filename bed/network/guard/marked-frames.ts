import { ethernet, type EthernetFields } from '../frames.js';
import type { SegmentHost } from './attacks.js';

/** Frames that a guest may send to a neighbour, by name. */
export type Frames = Readonly<Record<string, (me: SegmentHost, other: SegmentHost) => EthernetFields>>;

/** Frames that are recognized where they arrive. */
export class MarkedFrames {
  readonly frames: readonly Buffer[];
  readonly #names: readonly string[];
  readonly #heads: readonly Buffer[];

  constructor(frames: Frames, me: SegmentHost, other: SegmentHost) {
    this.#names = Object.keys(frames);
    const fields = this.#names.map((name) => frames[name]!(me, other));
    this.frames = fields.map((each, index) => ethernet(each, markOf(index)));
    this.#heads = fields.map(headOf);
  }

  /** Returns the names of those that are among the received frames. */
  among(received: readonly Buffer[]): string[] {
    return this.#names.filter((_, index) => {
      const [mark, head] = [markOf(index), this.#heads[index]!];
      return received.some((frame) => frame.includes(mark) || frame.subarray(0, head.length).equals(head));
    });
  }
}

/** Stands behind the frame. Where packet filters of bridges are on, the kernel cuts it off IP packets. */
function markOf(index: number): string {
  return `holdfast-${String(index).padStart(3, '0')}`;
}

/** The frame without what may be cut off. */
function headOf(fields: EthernetFields): Buffer {
  return ethernet(fields).subarray(0, 14 + fields.body.length);
}
