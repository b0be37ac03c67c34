import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../../bed/processes/wait.js';
import type { KubeObject } from '../../api/meta.js';
import { RESPONDERS_NAMESPACE } from '../../api/names.js';
import { responderSetName } from '../../api/responders.js';
import { beatOf, indexNames, readIndex } from '../../guest/responder-tables/published-index.js';
import type { Resource } from '../../kube/resource.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  CONFIG_MAPS,
  type ConfigMap,
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  STATEFUL_SETS,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kube/resources.js';
import type { ObjectTracker } from '../../kube/testing/object-tracker.js';
import { adminPool, nadDefinition } from '../../test/objects/pool-objects.js';
import type { Figure } from '../report.js';
import { LONGEST_BLOCK_MS, READY_MS, type Served, startPart, withServer } from '../scale/part-process.js';
import { usageOf } from '../usage.js';
import { runningVm } from './running-vms.js';

const VMS_OF_NETWORK = 4;
const CHANGES = 20;
const WATCHED_MS = 20_000;

/** Measures `holdfast guest` with so many layer-2 networks, each with responders and a few guests: when all are new, and when it starts again. */
export async function benchGuestNetworks(networks: number): Promise<Figure[]> {
  return await withServer(async (served) => {
    storeNetworks(served.tracker, networks);
    served.server.prepare();
    const title = `guest: ${networks} networks`;
    return [
      ...(await measureStart(`${title}, all new`, networks, served)),
      ...(await measureStart(`${title}, started again`, networks, served)),
      { name: `${title}: largest index`, value: largestIndex(served.tracker, networks), unit: 'B' },
    ];
  });
}

async function measureStart(title: string, networks: number, served: Served): Promise<Figure[]> {
  const { tracker, server } = served;
  const flags = [`--max-responder-pools=${networks}`, '--responder-image=holdfast:bench'];
  const beats = indexesOf(tracker, networks).map((index) => index && beatOf(index).beat);
  const [began, earlier] = [performance.now(), server.writes];
  const { child, ready, longestBlocks } = await startPart('guest', served, flags);
  await ready();
  const readySeconds = (performance.now() - began) / 1000;
  process.kill(child.pid, 'SIGUSR2');
  const isCurrent = () => {
    const indexes = indexesOf(tracker, networks).map((index) => index && readIndex(index));
    // the last process wrote the first ones
    const isNew = indexes.every((index, n) => index !== undefined && index.beat > (beats[n] ?? 0));
    const current = indexes.reduce((sum, index) => sum + Object.keys(index?.versions ?? {}).length, 0);
    return isNew && current === networks && tracker.objects(STATEFUL_SETS).size === networks;
  };
  await until('all tables to be current, and all StatefulSets', isCurrent, { timeoutMs: READY_MS });
  const [currentSeconds, written] = [(performance.now() - began) / 1000, server.writes - earlier];
  const { cpuSeconds } = await usageOf(child.pid);
  const changed = await Promise.all(Array.from({ length: CHANGES }, (_, n) => changeGuest(tracker, n)));
  const [before, writes] = [await usageOf(child.pid), server.writes];
  await pause(WATCHED_MS);
  const after = await usageOf(child.pid);
  const { wallMs, cpuMs } = await longestBlocks();
  const idleWrites = (server.writes - writes) / (WATCHED_MS / 1000);
  await child.stop();
  return [
    { name: `${title}: ready after`, value: readySeconds, unit: 's' },
    { name: `${title}: all tables are current after`, value: currentSeconds, unit: 's' },
    { name: `${title}: writes until then`, value: written, unit: '' },
    { name: `${title}: CPU until then`, value: cpuSeconds, unit: 's' },
    { name: `${title}: ${CHANGES} changed guests are in their tables after`, value: Math.max(...changed), unit: 's' },
    { name: `${title}: longest block`, value: wallMs, unit: 'ms', target: { atMost: LONGEST_BLOCK_MS } },
    { name: `${title}: longest block, CPU time`, value: cpuMs, unit: 'ms', target: { atMost: LONGEST_BLOCK_MS } },
    { name: `${title}: RSS, peak`, value: after.peakMiB, unit: 'MiB' },
    { name: `${title}: writes without a change`, value: idleWrites, unit: '/s' },
    { name: `${title}: CPU without a change`, value: (after.cpuSeconds - before.cpuSeconds) / (WATCHED_MS / 1000), unit: 'cores' }, // oxfmt-ignore
  ];
}

function storeNetworks(tracker: ObjectTracker, networks: number): void {
  const put = (resource: Resource, object: KubeObject) => tracker.put(resource, object);
  for (const name of ['vms', RESPONDERS_NAMESPACE]) put(NAMESPACES, { metadata: { name } });
  for (let n = 0; n < networks; n++) {
    const name = `net${n}`;
    const config = { name, type: 'bridge', bridge: name, allowPersistentIPs: true };
    put(ADDRESS_POOLS, adminPool(name, { network: name, cidr: '10.0.0.0/8', guest: { attachment: name, dhcp: {} } }));
    for (const namespace of ['vms', RESPONDERS_NAMESPACE])
      put(NETWORK_ATTACHMENT_DEFINITIONS, nadDefinition(`${namespace}/${name}`, config));
    for (let vm = n * VMS_OF_NETWORK; vm < (n + 1) * VMS_OF_NETWORK; vm++) storeVm(tracker, vm, name);
  }
  tracker.compact();
}

function storeVm(tracker: ObjectTracker, number: number, network: string): void {
  const vm = runningVm(number, [network], () => network);
  tracker.put(VIRTUAL_MACHINE_INSTANCES, vm.vmi);
  for (const { claim, lease } of vm.claims) {
    tracker.put(IPAM_CLAIMS, claim);
    tracker.put(ADDRESS_LEASES, lease);
  }
}

function indexesOf(tracker: ObjectTracker, networks: number): (ConfigMap | undefined)[] {
  return indexNames(networks).map((name) => tracker.find(CONFIG_MAPS, { namespace: RESPONDERS_NAMESPACE, name }));
}

function largestIndex(tracker: ObjectTracker, networks: number): number {
  return Math.max(...indexesOf(tracker, networks).map((index) => JSON.stringify(index?.data).length));
}

/** Lets a guest end, or begin again. Returns after how many seconds its table has changed. */
async function changeGuest(tracker: ObjectTracker, network: number): Promise<number> {
  const { uid = '' } = tracker.find(ADDRESS_POOLS, { name: `net${network}` })!.metadata;
  const ref = { namespace: RESPONDERS_NAMESPACE, name: responderSetName({ uid }) };
  const versionOf = () => tracker.find(CONFIG_MAPS, ref)?.metadata.resourceVersion;
  const [before, began] = [versionOf(), performance.now()];
  const [number, vm] = [network * VMS_OF_NETWORK, { namespace: 'vms', name: `vm${network * VMS_OF_NETWORK}` }];
  if (tracker.find(VIRTUAL_MACHINE_INSTANCES, vm) === undefined) storeVm(tracker, number, `net${network}`);
  else tracker.delete(VIRTUAL_MACHINE_INSTANCES, vm);
  await until('the table to change', () => versionOf() !== before, { timeoutMs: READY_MS, everyMs: 5 });
  return (performance.now() - began) / 1000;
}
