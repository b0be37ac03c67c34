import { isForbidden, isNotFound } from '../../kube/errors.js';
import { reasonOf } from '../forbidden.js';

/** What a bundle does not contain, and why. */
export class BundleNotes {
  readonly #lines = new Set<string>();

  get lines(): readonly string[] {
    return [...this.#lines];
  }

  /** Something was too large. */
  cut(what: string, why: string): void {
    this.#lines.add(`CUT      ${what}: ${why}`);
  }

  /** The user may not read something. */
  refused(what: string, why: string): void {
    this.#lines.add(`REFUSED  ${what}: ${why}`);
  }

  /** Something could not be read. */
  missing(what: string, error: unknown): void {
    if (isForbidden(error)) this.refused(what, reasonOf(error));
    else if (isNotFound(error)) this.#lines.add(`ABSENT   ${what}: the API server does not have it`);
    else this.#lines.add(`MISSING  ${what}: ${reasonOf(error)}`);
  }
}
