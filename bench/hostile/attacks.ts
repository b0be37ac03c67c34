import type { Client } from '../../kube/client.js';
import type { Resource } from '../../kube/resource.js';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import { CONFIG_MAPS, NETWORK_ATTACHMENT_DEFINITIONS, PODS, VIRTUAL_MACHINES } from '../../kube/resources.js';
import { putNetwork } from '../../bed/story/networks.js';
import { vmManifest } from '../../bed/story/vms/vm.js';
import { runLoad } from '../load.js';
import { VICTIM_NETWORK } from './victim.js';

/** A user with all rights in a namespace. */
export interface Attacker {
  readonly client: Client;
  readonly namespace: string;
}

export interface Attack {
  readonly name: string;
  readonly perSecond: number;
  prepare?(attacker: Attacker): Promise<void>;
  /** @param n the number of the write, from 0 */
  write(attacker: Attacker, n: number): Promise<unknown>;
  /** As many writes by the attacker's own client as `write` causes, with nothing to do for Holdfast: another baseline. */
  writeWithoutHoldfast?: (attacker: Attacker, n: number) => Promise<unknown>;
}

const NADS = 1_500;
/** The most that are derived from NADs of one namespace by default. */
const POOLS = 64;
const INTERFACES = 32;
const HALTED_VMS = 100;
const PRETENDED_LAUNCHERS = 300;
/** The claim, its lease and its status. */
const CREATION_WRITES = 3;
/** The claim is deleted, its finalizer removed, and the lease released. */
const RELEASE_WRITES = 3;
const OWN_SUBNETS = [{ cidr: '10.98.0.0/16' }];

/** The writes with which each attack is compared. */
export const CONFIG_MAP_WRITES: Omit<Attack, 'perSecond'> = {
  name: 'ConfigMaps',
  prepare: async ({ client, namespace }) => {
    await client.create(CONFIG_MAPS, { metadata: { namespace, name: 'written' }, data: {} });
  },
  write: (attacker, n) => relabel(attacker, CONFIG_MAPS, 'written', n),
};

/** What a tenant can write that costs others most: see docs/concepts/security-model.md. */
export const ATTACKS: readonly Attack[] = [
  {
    name: `labels of ${NADS} NADs`,
    perSecond: 80,
    prepare: (attacker) => putNads(attacker, NADS, () => ({ ipam: { type: 'holdfast' } })),
    write: (attacker, n) => relabel(attacker, NETWORK_ATTACHMENT_DEFINITIONS, `n${n % NADS}`, n),
  },
  {
    name: `labels of ${POOLS} NADs with pools`,
    perSecond: 80,
    prepare: (attacker) => putNads(attacker, POOLS, () => ({ ipam: { type: 'holdfast', subnets: OWN_SUBNETS } })),
    write: (attacker, n) => relabel(attacker, NETWORK_ATTACHMENT_DEFINITIONS, `n${n % POOLS}`, n),
  },
  {
    name: "specs of a NAD that names the other tenant's network",
    perSecond: 40,
    write: (attacker, n) =>
      putNetwork(attacker.client, 'copy', {
        namespace: attacker.namespace,
        config: {
          cniVersion: '1.0.0',
          name: VICTIM_NETWORK.name,
          type: 'bridge',
          bridge: `br-${n % 2}`,
          ipam: { type: 'holdfast' },
        },
      }),
  },
  {
    name: "VMs on a NAD with the other tenant's network and subnet",
    perSecond: 5,
    // may be rejected: then the VMs stay
    prepare: (attacker) =>
      putNetwork(attacker.client, 'blue', {
        ...{ namespace: attacker.namespace, network: VICTIM_NETWORK.name },
        subnets: [{ cidr: VICTIM_NETWORK.cidr }],
      }).then(
        () => undefined,
        () => undefined,
      ),
    write: (attacker, n) => attacker.client.create(VIRTUAL_MACHINES, manyInterfaces(attacker, n)),
  },
  {
    name: `${HALTED_VMS} halted VMs with ${INTERFACES} interfaces`,
    perSecond: 15,
    prepare: ownNetwork,
    write: async (attacker, n) => {
      if (n < HALTED_VMS) await attacker.client.create(VIRTUAL_MACHINES, manyInterfaces(attacker, n));
    },
    writeWithoutHoldfast: async (attacker, n) => {
      if (n >= HALTED_VMS) return;
      await attacker.client.create(VIRTUAL_MACHINES, manyInterfaces(attacker, HALTED_VMS + n, 'plain'));
      await writeForEachInterface(attacker, CREATION_WRITES, n);
    },
  },
  {
    name: `VMs with ${INTERFACES} interfaces that come and go`,
    perSecond: 4,
    prepare: ownNetwork,
    write: async (attacker, n) => {
      const { metadata } = await attacker.client.create(VIRTUAL_MACHINES, manyInterfaces(attacker, n));
      await attacker.client.delete(VIRTUAL_MACHINES, metadata);
    },
    writeWithoutHoldfast: async (attacker, n) => {
      const { metadata } = await attacker.client.create(VIRTUAL_MACHINES, manyInterfaces(attacker, n, 'plain'));
      await attacker.client.delete(VIRTUAL_MACHINES, metadata);
      await writeForEachInterface(attacker, CREATION_WRITES + RELEASE_WRITES, n);
    },
  },
  {
    name: `specs of ${POOLS} NADs whose pools report events`,
    perSecond: 40,
    prepare: (attacker) => putNads(attacker, POOLS, () => ({ ipam: { type: 'holdfast', subnets: OWN_SUBNETS } })),
    write: (attacker, n) => putNad(attacker, n % POOLS, { ipam: { type: 'holdfast', subnets: OWN_SUBNETS, ...(Math.floor(n / POOLS) % 2 === 0 && { exclude: ['bad'] }) } }), // oxfmt-ignore
  },
  {
    name: `dry runs of a NAD with the longest config, beside ${POOLS - 1} such pools`,
    perSecond: 20,
    prepare: (attacker) => putNads(attacker, POOLS - 1, (n) => longestIpam(attacker, 100 + n)),
    write: (attacker) => {
      const config = JSON.stringify({ cniVersion: '1.0.0', name: 'dry', type: 'bridge', ...longestIpam(attacker, 99) });
      const metadata = { namespace: attacker.namespace, name: 'dry' };
      return attacker.client.create(NETWORK_ATTACHMENT_DEFINITIONS, { metadata, spec: { config } }, { dryRun: true });
    },
  },
  {
    name: `labels of ${PRETENDED_LAUNCHERS} pods that look like launchers, with the longest networks`,
    perSecond: 40,
    prepare: async (attacker) => {
      const put = async (n: number) => {
        await putUnscheduledPod(attacker, `launcher-${n}`, { 'kubevirt.io': 'virt-launcher' });
        await putUnscheduledPod(attacker, `plain-${n}`, {});
      };
      await runLoad(put, { count: PRETENDED_LAUNCHERS, concurrency: 16 });
    },
    write: (attacker, n) => relabel(attacker, PODS, `launcher-${n % PRETENDED_LAUNCHERS}`, n),
    writeWithoutHoldfast: (attacker, n) => relabel(attacker, PODS, `plain-${n % PRETENDED_LAUNCHERS}`, n),
  },
];

/** The webhook lets any user add networks without a reference to a claim to such a pod, also if it has the label of launchers. */
async function putUnscheduledPod({ client, namespace }: Attacker, name: string, labels: object): Promise<void> {
  const containers = [{ name: 'c', image: 'none' }];
  const pod = { metadata: { namespace, name, labels } };
  await client.create(PODS, { ...pod, spec: { schedulingGates: [{ name: 'never/ready' }], containers } } as never);
  const keys = Array.from({ length: 8_000 }, (_, key) => `"${key.toString(36)}":0`).join();
  const text = `[{"name":"any",${keys}}]`;
  const body = { metadata: { annotations: { [NETWORKS_ANNOTATION]: text } } };
  await client.patch(PODS, { namespace, name }, { type: 'merge', body });
}

/** The longest config of a NAD, nearly: 16 subnets, of which each excludes 250 addresses. */
function longestIpam({ namespace }: Attacker, second: number) {
  const subnets = Array.from({ length: 16 }, (_subnet, third) => ({
    cidr: `10.${second}.${third * 2}.0/23`,
    exclude: Array.from({ length: 250 }, (_address, n) => `10.${second}.${third * 2}.${n + 2}`),
  }));
  return { ipam: { type: 'holdfast', addressSpace: namespace, subnets } };
}

async function ownNetwork({ client, namespace }: Attacker): Promise<void> {
  await putNetwork(client, 'blue', { namespace, network: `${namespace}-blue`, subnets: OWN_SUBNETS });
  await putNetwork(client, 'plain', { namespace, config: { name: 'plain', type: 'bridge', bridge: 'br-plain' } });
}

/** @param nad on which claims are made only for `blue` */
function manyInterfaces({ namespace }: Attacker, n: number, nad: 'blue' | 'plain' = 'blue') {
  const networks = Object.fromEntries(Array.from({ length: INTERFACES }, (_, index) => [`i${index}`, nad]));
  return vmManifest({ name: `vm-${n}`, namespace, networks, running: false });
}

async function writeForEachInterface(attacker: Attacker, writes: number, n: number): Promise<void> {
  const write = async (index: number) => {
    await relabel(attacker, CONFIG_MAPS, 'written', n * INTERFACES * writes + index);
  };
  await runLoad(write, { count: INTERFACES * writes, concurrency: 4 });
}

async function putNads(attacker: Attacker, count: number, more: (n: number) => object): Promise<void> {
  const put = async (n: number) => {
    await putNad(attacker, n, more(n));
  };
  await runLoad(put, { count, concurrency: 16 });
}

function putNad({ client, namespace }: Attacker, n: number, more: object) {
  const plugin = { type: 'bridge', bridge: `br-${n}`, allowPersistentIPs: true, ...more };
  const config = { cniVersion: '1.0.0', name: `${namespace}-${n}`, ...plugin };
  return putNetwork(client, `n${n}`, { namespace, config });
}

function relabel({ client, namespace }: Attacker, resource: Resource, name: string, n: number) {
  const body = { metadata: { labels: { written: String(n) } } };
  return client.patch(resource, { namespace, name }, { type: 'merge', body });
}
