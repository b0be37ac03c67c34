import jsonpatch, { type Operation } from 'fast-json-patch';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { podInterfaceName } from '../../api/pod.js';
import type { BedWithHoldfast } from '../environment.js';
import { ApiProxy, type Exchange } from '../faults/api-proxy.js';
import type { Story } from '../story/story.js';
import {
  connectWebhook,
  createAccount,
  disconnectWebhook,
  IPAM_EXTENSIONS_ACCOUNT,
  removeAccount,
} from './installation.js';
import { Program, PROGRAM_WEBHOOK } from './program.js';
import { SuspendedHoldfast } from './suspended-holdfast.js';

/** A write of kubevirt/ipam-extensions, with placeholders such as `${namespace}`. */
export type RecordedWrite =
  | { readonly method: 'POST'; readonly body: IPAMClaim }
  /** A PUT by what it changes. */
  | { readonly method: 'PUT'; readonly claim: string; readonly change: readonly Operation[] };

/** The writes for one workload, from its creation to the end of its claims. */
export interface RecordedCase {
  readonly title: string;
  readonly writes: readonly RecordedWrite[];
  /** The patches of launchers. */
  readonly patches: readonly Operation[];
}

interface CaseToRecord {
  readonly title: string;
  readonly networks: readonly string[];
  readonly end: 'Background' | 'Foreground' | 'VMI';
}

const CASES: readonly CaseToRecord[] = [
  { title: 'VM', networks: ['iface'], end: 'Background' },
  { title: 'VM with two odd names on one NAD', networks: ['multus_iface', 'Data'], end: 'Foreground' },
  { title: 'VMI without a VM', networks: ['iface'], end: 'VMI' },
];

/** Records what kubevirt/ipam-extensions writes while Holdfast is not installed. */
export async function recordWrites(bed: BedWithHoldfast, story: Story): Promise<RecordedCase[]> {
  const [written, reviewed]: [Exchange[], Exchange[]] = [[], []];
  const [api, webhook] = await Promise.all([
    ApiProxy.open(bed, { onExchange: (exchange) => written.push(exchange) }),
    ApiProxy.open(bed, { upstream: PROGRAM_WEBHOOK, onExchange: (exchange) => reviewed.push(exchange) }),
  ]);
  const holdfast = await SuspendedHoldfast.suspend(bed);
  let program: Program | undefined;
  try {
    await createAccount(bed);
    const { namespace, name } = IPAM_EXTENSIONS_ACCOUNT;
    program = await Program.start(bed, await api.kubeconfig(await bed.serviceAccountKubeconfig(namespace, name)));
    await connectWebhook(bed, webhook.url);
    await story.network('nad', { config: { cniVersion: '0.4.0', name: 'net', type: 'ovs', allowPersistentIPs: true } });
    const recorded: RecordedCase[] = [];
    for (const one of CASES) {
      const from = { written: written.length, reviewed: reviewed.length };
      const literals = await playCase(one, story);
      const generalize = <T>(value: T): T => withPlaceholders(value, literals);
      recorded.push({
        title: one.title,
        writes: generalize(distinct(writesOf(written.slice(from.written)))),
        patches: generalize(distinct(patchesOf(reviewed.slice(from.reviewed)))),
      });
    }
    return recorded;
  } finally {
    await disconnectWebhook(bed);
    await program?.stop();
    await Promise.all([api.close(), webhook.close()]);
    await removeAccount(bed);
    await holdfast.resume();
  }
}

/** @returns the literals of the case by their placeholder, longer ones first */
async function playCase({ networks, end }: CaseToRecord, story: Story): Promise<[string, string][]> {
  const nads = Object.fromEntries(networks.map((network) => [network, 'nad']));
  const workload = end === 'VMI' ? await story.createVmi('workload', nads) : await story.createVm('workload', nads);
  await story.waitRunning('workload');
  await story.claims.waitForCount(networks.length);
  if (end === 'VMI') await story.deleteVmi('workload');
  else await story.deleteVm('workload', end);
  await story.waitForClaims([]);
  await story.waitGone('workload');
  return [
    [workload.metadata.uid ?? '', '${uid}'],
    [story.namespace, '${namespace}'],
    ['workload.iface', '${claim}'],
    [podInterfaceName('iface'), '${interface}'],
    ['workload', '${name}'],
    ['"nad', '"${nad}'],
    ['\\"nad', '\\"${nad}'],
    ['"network":"net"', '"network":"${network}"'],
  ];
}

function writesOf(exchanges: readonly Exchange[]): RecordedWrite[] {
  const created = new Map<string, IPAMClaim>();
  return exchanges.flatMap(({ method, path, request, response }): RecordedWrite[] => {
    if (method === 'POST') {
      const claim = response as IPAMClaim;
      created.set(claim.metadata.name, claim);
      return [{ method, body: request as IPAMClaim }];
    }
    const claim = request as IPAMClaim;
    const before = created.get(claim.metadata.name);
    if (method !== 'PUT' || before === undefined) throw new Error(`${method} ${path} cannot be recorded`);
    return [{ method, claim: claim.metadata.name, change: jsonpatch.compare(writtenPart(before), writtenPart(claim)) }];
  });
}

/** The fields that no one else changes. */
function writtenPart({ metadata, spec }: IPAMClaim): object {
  const { name, labels, annotations, finalizers, ownerReferences } = metadata;
  return JSON.parse(
    JSON.stringify({ metadata: { name, labels, annotations, finalizers, ownerReferences }, spec }),
  ) as object;
}

function patchesOf(exchanges: readonly Exchange[]): Operation[] {
  return exchanges.flatMap(({ response }) => {
    const { patch } = (response as { response: { patch?: string } }).response;
    if (patch === undefined) return [];
    const operations = JSON.parse(Buffer.from(patch, 'base64').toString('utf8')) as Operation[];
    return operations.filter(({ path }) => path !== '/metadata/creationTimestamp'); // null, as Go writes it
  });
}

/** In a fixed order, because the program works on several claims at once. */
function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values.map((value) => JSON.stringify(value)))].sort().map((text) => JSON.parse(text) as T);
}

function withPlaceholders<T>(value: T, literals: readonly [string, string][]): T {
  const replaced = literals.reduce((text, [literal, name]) => text.replaceAll(literal, name), JSON.stringify(value));
  return JSON.parse(replaced) as T;
}
