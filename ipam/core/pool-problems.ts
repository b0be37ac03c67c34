import { describeValue } from '../../api/json.js';
import { AddressError } from './address.js';
import type { Family } from './address.js';
import type { Range } from './ranges.js';

/** Why a pool's spec cannot be served. */
export interface PoolProblem {
  /** Like `spec.subnets[0].exclude[2]`. */
  readonly field: string;
  /** Names the value, and says what to do. */
  readonly message: string;
}

/** A value of the spec, and where it stands. */
export interface FieldValue<T> {
  readonly field: string;
  readonly value: T;
}

/** Addresses as they are written somewhere in the spec. */
export interface WrittenRange extends Range {
  readonly family: Family;
  readonly field: string;
  readonly text: string;
}

/** More are not reported: a spec may have a thousand elements, and each could be wrong. */
const MAX_PROBLEMS = 20;

/** Collects what is wrong with a spec, so that an admin corrects it at once. What cannot be read is reported and left out. */
export class PoolProblems {
  readonly found: PoolProblem[] = [];

  add(field: string, message: string): void {
    if (this.found.length < MAX_PROBLEMS) this.found.push({ field, message });
  }

  /** A text, though the server's schema promises one: objects outlive schemas. */
  readText(field: string, value: unknown, like: string): string | undefined {
    if (typeof value === 'string' && value !== '') return value;
    this.add(field, `${describeValue(value)} is no text: write it like ${like}`);
    return undefined;
  }

  /** The elements of a list. Absent: none. */
  readList(field: string, value: unknown, max: number): FieldValue<unknown>[] {
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value)) {
      this.add(field, `${describeValue(value)} is no list: write one of at most ${max} elements`);
      return [];
    }
    if (value.length > max) this.add(field, `the list has ${value.length} elements: it may have ${max}, so join some`);
    return value.slice(0, max).map((element: unknown, i) => ({ field: `${field}[${i}]`, value: element }));
  }

  /** What a parser makes of a text. */
  parseText<T>({ field, value }: FieldValue<unknown>, like: string, parse: (text: string) => T): T | undefined {
    const text = this.readText(field, value, like);
    if (text === undefined) return undefined;
    try {
      return parse(text);
    } catch (error) {
      if (!(error instanceof AddressError)) throw error;
      this.add(field, error.message);
      return undefined;
    }
  }

  /** Reports each range that shares an address with one before it. */
  reportOverlaps(ranges: readonly WrittenRange[], remedy: string): void {
    let widest: WrittenRange | undefined;
    for (const range of [...ranges].sort(byFirst)) {
      const overlaps = widest?.family === range.family && range.first <= widest.last;
      if (widest !== undefined && overlaps) {
        const other = `${describeValue(widest.text)} (${widest.field})`;
        this.add(range.field, `${describeValue(range.text)} overlaps with ${other}: ${remedy}`);
      }
      if (widest === undefined || !overlaps || range.last > widest.last) widest = range;
    }
  }
}

function byFirst(a: WrittenRange, b: WrittenRange): number {
  if (a.family !== b.family) return a.family - b.family;
  return a.first < b.first ? -1 : a.first > b.first ? 1 : 0;
}
