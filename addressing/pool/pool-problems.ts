import { describeValue, isRecord } from '../../api/json.js';
import { type Family, AddressError } from '../address/address.js';
import { type Range, byFirst } from '../address/ranges.js';

/** A reason why a pool's spec is invalid. */
export interface PoolProblem {
  /** For example `spec.subnets[0].exclude[2]`. */
  readonly field: string;
  /** Quotes the value and says what to do. */
  readonly message: string;
}

/** A value of the spec and the path of its field. */
export interface FieldValue<T> {
  readonly field: string;
  readonly value: T;
}

/** A range, with the field and the text in which it was written. */
export interface WrittenRange extends Range {
  readonly family: Family;
  readonly field: string;
  readonly text: string;
}

/** True for a field that is not set, or null. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** How many problems are reported. A spec may have a thousand invalid elements. */
const MAX_PROBLEMS = 20;

/** Collects all problems of a spec, so that an administrator can correct them in one go. Invalid values are reported and skipped. */
export class PoolProblems {
  readonly found: PoolProblem[] = [];

  add(field: string, message: string): void {
    if (this.found.length < MAX_PROBLEMS) this.found.push({ field, message });
  }

  /** Reads a string. The CRD's schema requires one, but objects can be older than the schema. */
  readText(field: string, value: unknown, like: string): string | undefined {
    if (typeof value === 'string' && value !== '') return value;
    this.add(field, `${describeValue(value)} is not a string: write it like ${like}`);
    return undefined;
  }

  /** Reads the elements of a list; none if it is absent. */
  readList(field: string, value: unknown, max: number): FieldValue<unknown>[] {
    if (isAbsent(value)) return [];
    if (!Array.isArray(value)) {
      this.add(field, `${describeValue(value)} is not a list: write one of at most ${max} elements`);
      return [];
    }
    if (value.length > max) this.add(field, `has ${value.length} elements, and at most ${max} are allowed: join some`);
    return value.slice(0, max).map((element: unknown, i) => ({ field: `${field}[${i}]`, value: element }));
  }

  /** Reads an object that must be there. */
  readObject({ field, value }: FieldValue<unknown>, like?: string): Record<string, unknown> | undefined {
    if (isRecord(value)) return value;
    this.add(
      field,
      `${describeValue(value)} is not an object: ${like === undefined ? 'correct it' : `write it like ${like}`}`,
    );
    return undefined;
  }

  /** Reads an object; undefined if it is absent. */
  readOptionalObject(place: FieldValue<unknown>, like?: string): Record<string, unknown> | undefined {
    return isAbsent(place.value) ? undefined : this.readObject(place, like);
  }

  /** Reads a whole number; undefined if it is absent. */
  readInteger(
    { field, value }: FieldValue<unknown>,
    { least = 0, most }: { readonly least?: number; readonly most: number },
  ): number | undefined {
    if (isAbsent(value)) return undefined;
    if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
    this.add(field, `${describeValue(value)} is not an integer from ${least} to ${most}: correct it`);
    return undefined;
  }

  /** Reads a boolean; false if it is absent. */
  readFlag(field: string, value: unknown): boolean {
    if (typeof value === 'boolean') return value;
    if (!isAbsent(value))
      this.add(field, `${describeValue(value)} is neither true nor false: write one of them, without quotes`);
    return false;
  }

  /** Parses a string; reports the parser's error. */
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

  /** Reports each range that overlaps with an earlier one. */
  reportOverlaps(ranges: readonly WrittenRange[], remedy: string): void {
    let widest: WrittenRange | undefined;
    for (const range of [...ranges].sort((a, b) => a.family - b.family || byFirst(a, b))) {
      const overlaps = widest?.family === range.family && range.first <= widest.last;
      if (widest !== undefined && overlaps) {
        const other = `${describeValue(widest.text)} (${widest.field})`;
        this.add(range.field, `${describeValue(range.text)} overlaps with ${other}: ${remedy}`);
      }
      if (widest === undefined || !overlaps || range.last > widest.last) widest = range;
    }
  }
}
