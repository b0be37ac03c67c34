import type { BundleOptions } from './options.js';

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
