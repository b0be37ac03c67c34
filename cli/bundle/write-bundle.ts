import { createWriteStream, existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { nadNamespaceOf } from '../../api/address-pool.js';
import { type KubeObject, splitKey } from '../../api/meta.js';
import { StatusError, TransportError } from '../../kube/errors.js';
import { VERSION } from '../../process/version.js';
import type { Connection } from '../cluster-client.js';
import { CommandError } from '../exit-code.js';
import { diagnose, isUnchecked } from '../doctor/diagnose.js';
import { type NarrowedList, type ObservedCluster, observeCluster } from '../doctor/observe.js';
import { reportOf } from '../doctor/finding.js';
import { DEFAULT_NAMESPACES, findNamespacesOrDefault } from '../installation.js';
import type { Output } from '../output.js';
import { formatStatus, statusOf } from '../status.js';
import { textOf } from '../terminal.js';
import { BUNDLE_LIMITS, collectBundle } from './collect.js';
import { BundleNotes, type BundleOptions } from './notes.js';
import { tarOf } from './tar.js';

/** Where a bundle is written. */
type BundleTarget = { readonly file: string } | { readonly stream: Writable };

/**
 * Collects a bundle and writes it as a compressed archive, while it is collected.
 * @param now milliseconds since the epoch
 * @returns what is missing in it, and whether its user may read nothing of what the doctor checks
 * @throws {CommandError} if the file exists, or cannot be written
 */
export async function writeBundle(
  { client, transport, home }: Pick<Connection, 'client' | 'transport' | 'home'>,
  target: BundleTarget,
  options: BundleOptions,
  { now, showProgress }: { now: number; showProgress: (text: string) => void },
): Promise<{ readonly missing: readonly string[]; readonly isUnchecked: boolean }> {
  const notes = new BundleNotes();
  const { reports, hasNothing } = await readReports({ client, home }, options, notes, showProgress);
  const namespaces = await findNamespacesOrDefault(client).catch((error: unknown) => {
    notes.missing('namespaces of Holdfast', error);
    return new Set(DEFAULT_NAMESPACES);
  });
  const time = new Date(now).toISOString();
  const sources = { client, transport, namespaces, showProgress, limits: BUNDLE_LIMITS, version: VERSION, time };
  const files = collectBundle(reports, notes, options, sources);
  const bytes = tarOf(bundleName(now), files, Math.floor(now / 1000));
  if ('stream' in target) await pipeline(bytes, createGzip(), target.stream, { end: false });
  else await writeFile(bytes, target.file);
  return { missing: notes.lines, isUnchecked: hasNothing };
}

/** `holdfast-bundle-20300131-140000` */
export function bundleName(now: number): string {
  const [date = '', time = ''] = new Date(now).toISOString().replace(/\..*$/, '').split('T');
  return `holdfast-bundle-${date.replaceAll('-', '')}-${time.replaceAll(':', '')}`;
}

/** Writes beside the file and renames at the end: after Ctrl-C, half an archive has another name, and the next run replaces it. */
async function writeFile(bytes: AsyncIterable<Buffer>, file: string): Promise<void> {
  const partial = `${file}.partial`;
  refuseExisting(file);
  await rm(partial, { force: true });
  try {
    // for its user only
    await pipeline(bytes, createGzip(), createWriteStream(partial, { flags: 'wx', mode: 0o600 }));
    refuseExisting(file);
    await rename(partial, file);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

function refuseExisting(file: string): void {
  if (existsSync(file)) throw new CommandError(`${file} exists: remove it, or name another file with --output-file`);
}

/** @throws {TransportError | StatusError} if the API server does not answer, or does not accept the credentials */
async function readReports(
  { client, home }: Pick<Connection, 'client' | 'home'>,
  { namespace }: BundleOptions,
  notes: BundleNotes,
  showProgress: (text: string) => void,
): Promise<{ readonly reports: Record<string, string>; readonly hasNothing: boolean }> {
  try {
    const all = await observeCluster(client, { withData: true, home: namespace ?? home, showProgress });
    const observed = namespace === undefined ? all : narrowTo(namespace, all);
    const findings = diagnose(observed, VERSION);
    for (const refused of observed.refused) notes.refused('status and doctor', refused);
    const hasNothing = isUnchecked(observed);
    const reports = {
      ...textsOf('status', formatStatus(statusOf(observed, findings, VERSION))),
      ...textsOf('doctor', reportOf(findings, observed, hasNothing)),
    };
    return { reports, hasNothing };
  } catch (error) {
    if (error instanceof TransportError || (error instanceof StatusError && error.status === 401)) throw error;
    notes.missing('status and doctor', error);
    return { reports: {}, hasNothing: false };
  }
}

/** Leaves out the VMs, networks and leases of other namespaces, which somebody else may own than who gives the bundle away. */
function narrowTo(namespace: string, observed: ObservedCluster): ObservedCluster {
  const ownOf = <T extends KubeObject>(list: readonly T[] | undefined) =>
    list?.filter(({ metadata }) => metadata.namespace === namespace);
  const { nads, claims, vms, events, launchers, pools, ownerlessLeases, lockedLeases } = observed;
  const narrowed = {
    ...{ nads: ownOf(nads), claims: ownOf(claims), vms: ownOf(vms) },
    ...{ events: ownOf(events), launchers: ownOf(launchers) },
  };
  return {
    ...observed,
    ...narrowed,
    pools: pools?.filter((pool) => (nadNamespaceOf(pool) ?? namespace) === namespace),
    ownerlessLeases: ownerlessLeases?.filter(({ owner }) => owner.namespace === namespace),
    lockedLeases: lockedLeases?.filter(({ secret }) => splitKey(secret).namespace === namespace),
    onlyNamespace: namespace,
    narrowed: Object.keys(narrowed) as NarrowedList[],
  };
}

function textsOf(name: string, { data, lines }: Output): Record<string, string> {
  return {
    [`${name}.txt`]: `${lines(true).map(textOf).join('\n')}\n`,
    [`${name}.json`]: `${JSON.stringify(data, undefined, 2)}\n`,
  };
}
