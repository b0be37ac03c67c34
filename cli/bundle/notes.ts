import { isForbidden, isNotFound } from '../../kube/errors.js';
import { reasonOf } from '../forbidden.js';

export interface BundleOptions {
  /** Only tenants' objects of this namespace. */
  readonly namespace?: string | undefined;
  /** Only log lines of the last seconds. */
  readonly sinceSeconds?: number | undefined;
}

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

const CONTENTS = `status.txt, status.json   what kubectl holdfast status says
doctor.txt, doctor.json   what kubectl holdfast doctor says
objects/<kind>/           objects, one file for each page of a list; VMs, pods and nodes have only the fields about networks
logs/<pod>/               logs of the processes; .previous is that of the container before its restart
metrics/                  metrics of the processes

Secrets were not read. Values of environment variables, credentials in arguments and texts, private keys and guest data are
replaced by REDACTED. Read the files before you give them away: names, addresses and messages of the cluster are in them.
`;

/** The text of `README.txt`. @param notes what is missing */
export function describeBundle(
  notes: readonly string[],
  { namespace, sinceSeconds }: BundleOptions,
  { version, time }: { readonly version: string; readonly time: string },
): string {
  const restrictions = [
    ...(namespace === undefined ? [] : [`Tenants' objects are those of namespace ${namespace}.`]),
    ...(sinceSeconds === undefined ? [] : [`Logs begin ${sinceSeconds} s before this time.`]),
  ];
  return [
    `Made by kubectl holdfast bundle ${version} at ${time}.`,
    ...restrictions,
    '',
    CONTENTS,
    notes.length === 0 ? 'Nothing is missing.' : 'What is missing:',
    ...notes,
    '',
  ].join('\n');
}
