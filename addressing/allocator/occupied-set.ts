import { type Range, lastIndexWhere } from '../address/ranges.js';

/** Neighbouring runs of a set, in order. A run of one value stores one bigint in both arrays. */
interface Chunk {
  readonly firsts: bigint[];
  readonly lasts: bigint[];
}

/** The last run that begins at or before a value. `run` is -1 if there is none. */
interface RunPosition {
  chunk: number;
  run: number;
}

/** The most runs in a chunk. Moving half as many words is cheaper than another level of a tree. */
const CHUNK_LIMIT = 512;
/** Chunks with fewer runs are joined with a neighbour. */
const CHUNK_LOW = CHUNK_LIMIT / 8;

/**
 * A sparse set of bigints, stored as merged runs. Memory grows with the number of runs, never with the span of the values.
 * Operations on one value are binary searches. Values between two runs are free, so finding a free value takes the same time at any
 * utilisation.
 */
export class OccupiedSet {
  /** No chunk is empty. */
  readonly #chunks: Chunk[] = [];
  #size = 0;

  /** The number of values. */
  get size(): number {
    return this.#size;
  }

  /** The number of runs, which determines the memory. */
  get runCount(): number {
    return this.#chunks.reduce((sum, { firsts }) => sum + firsts.length, 0);
  }

  has(value: bigint): boolean {
    return this.#holds(this.#find(value), value);
  }

  /** @returns false if the value was in the set already */
  add(value: bigint): boolean {
    const place = this.#find(value);
    if (this.#holds(place, value)) return false;
    const next = this.#following(place);
    const touchesLeft = place.run >= 0 && this.#last(place) === value - 1n;
    const touchesRight = next !== undefined && this.#first(next) === value + 1n;
    if (touchesLeft) {
      this.#setLast(place, touchesRight ? this.#last(next) : value);
      if (touchesRight) this.#remove(next);
    } else if (touchesRight) this.#setFirst(next, value);
    else this.#insert(place, value, value);
    this.#size++;
    return true;
  }

  /** @returns false if the value was not in the set */
  delete(value: bigint): boolean {
    const place = this.#find(value);
    if (!this.#holds(place, value)) return false;
    const first = this.#first(place);
    const last = this.#last(place);
    if (first === last) this.#remove(place);
    else if (first === value) this.#setFirst(place, value + 1n);
    else {
      this.#setLast(place, value - 1n);
      if (last !== value) this.#insert(place, value + 1n, last);
    }
    this.#size--;
    return true;
  }

  /** Returns the lowest value from `from` to `last`, both included, that is not in the set. */
  firstFree(from: bigint, last: bigint): bigint | undefined {
    const place = this.#find(from);
    // runs never touch: the value after the end of a run is free
    const free = this.#holds(place, from) ? this.#last(place) + 1n : from;
    return free <= last ? free : undefined;
  }

  /** Counts the values of the set from `first` to `last`, both included. Time grows with the runs in between. */
  countIn(first: bigint, last: bigint): number {
    let count = 0;
    for (const run of this.runsIn(first, last)) count += Number(run.last - run.first) + 1;
    return count;
  }

  /** Yields the values of the set from `first` to `last`, both included, as runs in order. */
  *runsIn(first: bigint, last: bigint): Iterable<Range> {
    const start = this.#find(first);
    for (
      let place: RunPosition | undefined = start.run < 0 ? this.#following(start) : start;
      place !== undefined && this.#first(place) <= last;
      place = this.#following(place)
    ) {
      const from = this.#first(place) > first ? this.#first(place) : first;
      const to = this.#last(place) < last ? this.#last(place) : last;
      if (to >= from) yield { first: from, last: to };
    }
  }

  #find(value: bigint): RunPosition {
    const chunk = lastIndexWhere(this.#chunks, ({ firsts }) => at(firsts, 0) <= value);
    if (chunk < 0) return { chunk: 0, run: -1 };
    return { chunk, run: lastIndexWhere(at(this.#chunks, chunk).firsts, (first) => first <= value) };
  }

  #holds(place: RunPosition, value: bigint): boolean {
    return place.run >= 0 && this.#last(place) >= value;
  }

  #following({ chunk, run }: RunPosition): RunPosition | undefined {
    const found = this.#chunks[chunk];
    if (found === undefined) return undefined;
    if (run + 1 < found.firsts.length) return { chunk, run: run + 1 };
    return chunk + 1 < this.#chunks.length ? { chunk: chunk + 1, run: 0 } : undefined;
  }

  #first({ chunk, run }: RunPosition): bigint {
    return at(at(this.#chunks, chunk).firsts, run);
  }

  #last({ chunk, run }: RunPosition): bigint {
    return at(at(this.#chunks, chunk).lasts, run);
  }

  #setFirst({ chunk, run }: RunPosition, value: bigint): void {
    const { firsts, lasts } = at(this.#chunks, chunk);
    const last = at(lasts, run);
    firsts[run] = last === value ? last : value;
  }

  #setLast({ chunk, run }: RunPosition, value: bigint): void {
    const { firsts, lasts } = at(this.#chunks, chunk);
    const first = at(firsts, run);
    lasts[run] = first === value ? first : value;
  }

  #insert({ chunk, run }: RunPosition, first: bigint, last: bigint): void {
    const found = this.#chunks[chunk];
    if (found === undefined) {
      this.#chunks.push({ firsts: [first], lasts: [last] });
      return;
    }
    const { firsts, lasts } = found;
    firsts.splice(run + 1, 0, first);
    lasts.splice(run + 1, 0, last);
    if (firsts.length <= CHUNK_LIMIT) return;
    // values mostly come in order: a last chunk that grew at its end stays full
    const appended = chunk === this.#chunks.length - 1 && run + 2 === firsts.length;
    const half = appended ? firsts.length - 1 : firsts.length >> 1;
    this.#chunks.splice(chunk + 1, 0, { firsts: firsts.splice(half), lasts: lasts.splice(half) });
  }

  #remove({ chunk, run }: RunPosition): void {
    const { firsts, lasts } = at(this.#chunks, chunk);
    firsts.splice(run, 1);
    lasts.splice(run, 1);
    if (firsts.length === 0) this.#chunks.splice(chunk, 1);
    else if (firsts.length < CHUNK_LOW) this.#joinNext(chunk > 0 ? chunk - 1 : chunk);
  }

  /** Joins a small chunk with the next one, so that a set that shrank does not consist of many small chunks. */
  #joinNext(chunk: number): void {
    const one = this.#chunks[chunk];
    const next = this.#chunks[chunk + 1];
    if (one === undefined || next === undefined || one.firsts.length + next.firsts.length > CHUNK_LIMIT / 2) return;
    one.firsts.push(...next.firsts);
    one.lasts.push(...next.lasts);
    this.#chunks.splice(chunk + 1, 1);
  }
}

function at<T>(list: readonly T[], index: number): T {
  const element = list[index];
  if (element === undefined) throw new RangeError(`no element ${index} in a list of ${list.length}`);
  return element;
}
