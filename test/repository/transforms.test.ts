import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../api/kubevirt.js';
import type { KubeObject } from '../../api/meta.js';
import { NETWORKS_ANNOTATION, NETWORK_STATUS_ANNOTATION, REQUESTED_ADDRESSES_ANNOTATION } from '../../api/names.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import type { Pod } from '../../api/pod.js';
import type { Indexes } from '../../kube/informers/cache.js';
import { heapBytes } from '../heap.js';
import { transformNodePod } from '../../cni/agent/node-pods.js';
import { transformLauncher } from '../../controller/caches.js';
import { readPodRecord } from '../../capacity/pod-record.js';
import { CLAIM_PODS } from '../../ipam/claims/running/claim-pods.js';
import { derivedSpec } from '../../addressing/pool/derived-pool.js';
import { transformServedClaim as shrinkServedClaim } from '../../ipam/claims/claim-transform.js';
import { CLAIM_INDEXES, VMI_INDEXES, VM_INDEXES } from '../../cluster/watch-specs.js';
import { transformClaim, transformNad, transformVm, transformVmi } from '../../cluster/transforms.js';
import { transformGuestVm, transformGuestVmi } from '../../guest/watch-specs.js';
import { readPod } from '../../webhook/reviewed-pod.js';

/** The size limits of etcd for an object, and of the API server for all annotations of an object. */
const OBJECT_BYTES = 1_500_000;
const ANNOTATION_BYTES = 256 * 1024;
/** How much larger than its input, as JSON, an output may be in the heap. */
const MOST_MEMORY = 12;
/** How often the output of a transform may hold an object, a text or a number for each byte of its input. */
const MOST_VALUES = 1;
/** How much longer than JSON.parse of the same text a transform may take, and the time that any transform may take, in µs. */
const MOST_TIME = 100;
const SHORT_TIME = 100_000;

interface Hostile {
  what: string;
  text: string;
  transform: (object: never) => unknown;
}

/** As many elements as fit. */
function fill(bytes: number, element: (index: number) => string): string {
  const elements: string[] = [];
  for (let size = 0; size < bytes; size += (elements.at(-1)?.length ?? 0) + 1) elements.push(element(elements.length));
  return elements.join(',');
}

const META = '"metadata":{"name":"n","namespace":"tenant","uid":"u","resourceVersion":"1"';

function nadText(config: string): string {
  return `{${META}},"spec":{"config":${JSON.stringify(config)}}}`;
}

function ipamText(ipam: string): string {
  return nadText(`{"name":"blue","type":"bridge","ipam":{"type":"hold\\u0066ast",${ipam}}}`);
}

function nads(bytes: number): { what: string; text: string }[] {
  const half = bytes / 2;
  const hex = (index: number) => index.toString(16);
  return [
    {
      what: 'ranges times exclusions',
      text: ipamText(
        `"ipRanges":[${fill(half, () => '{"range":"10.0.0.0/8"}')}],"exclude":[${fill(half, (i) => `"10.${i}"`)}]`,
      ),
    },
    {
      what: 'ranges with exclusions in the bounds',
      text: ipamText(
        `"ipRanges":[${fill(300, () => '{"range":"::/9"}')}],"exclude":[${fill(1800, (i) => `"::${hex(i * 2)}"`)}]`,
      ),
    },
    {
      what: 'subnets with exclusions',
      text: ipamText(
        `"subnets":[${fill(bytes, (n) => `{"cidr":"${hex(n + 1)}::/64","exclude":[${fill(3000, (i) => `"${hex(n + 1)}::${hex(i * 2)}"`)}]}`)}]`,
      ),
    },
    {
      what: 'excluded texts that are no address',
      text: ipamText(`"range":"::/9","exclude":[${fill(bytes, () => '"x"')}]`),
    },
    { what: 'namespaces', text: ipamText(`"namespaces":[${fill(bytes, (i) => `"${hex(i)}"`)}]`) },
    { what: 'labels of nodes', text: ipamText(`"nodeSelector":{${fill(bytes, (i) => `"${hex(i)}":""`)}}`) },
    { what: 'unknown keys', text: ipamText(fill(bytes, (i) => `"k${hex(i)}":0`)) },
    { what: 'one long key', text: ipamText(`"${'k'.repeat(bytes)}":0`) },
    { what: 'plugins', text: nadText(`{"name":"blue","plugins":[${fill(bytes, () => '{}')}]}`) },
    { what: 'nested lists', text: nadText(`{"a":${'['.repeat(half)}${']'.repeat(half)}}`) },
    {
      what: 'nested lists in a plugin that delegates',
      text: nadText(
        `{"name":"blue","type":"bridge","ipam":{"type":"holdfast"},"a":${'['.repeat(half - 99)}${']'.repeat(half - 99)}}`,
      ),
    },
    {
      what: 'keys in a plugin that delegates',
      text: nadText(
        `{"name":"blue","type":"bridge","ipam":{"type":"holdfast"},${fill(bytes, (i) => `"k${hex(i)}":0`)}}`,
      ),
    },
    { what: 'a long name', text: nadText(`{"name":"${'n'.repeat(bytes)}","ipam":{"type":"holdfast"}}`) },
    { what: 'what is no JSON', text: nadText('{'.repeat(bytes)) },
  ];
}

const RIGHTS = { servesAll: false, publishesCapacity: false };

function transformNadWithPool(nad: NetworkAttachmentDefinition): unknown {
  const small = transformNad(nad);
  const { config, delegation } = small;
  // computed from it on each read
  return config.ok && delegation.kind === 'holdfast'
    ? [small, derivedSpec(config.network.name, delegation.config, { namespace: 'vms', rights: RIGHTS })]
    : small;
}

function annotated(key: string, value: string, more = ''): string {
  return `{${META},"annotations":{${JSON.stringify(key)}:${JSON.stringify(value)}}}${more}}`;
}

const PHASE = ',"status":{"phase":"Running"}';

function pods(): { what: string; text: string }[] {
  const owner =
    '{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance","name":"v","uid":"u","controller":true}';
  const containers = fill(OBJECT_BYTES, (i) => `{"resources":{"requests":{"ipam.holdfast.dev/${i}":"1"}}}`);
  const terms = fill(OBJECT_BYTES, () => '{"matchFields":[{"key":"metadata.name","operator":"In","values":["a"]}]}');
  const waiting = '"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}';
  const asking = '"containers":[{"resources":{"requests":{"ipam.holdfast.dev/p":"1"}}}]';
  const affinity = `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[${terms}]}}}`;
  return [
    {
      what: 'network elements',
      text: annotated(NETWORKS_ANNOTATION, `[${fill(ANNOTATION_BYTES, () => '{"name":"b"}')}]`, PHASE),
    },
    {
      what: 'references to claims',
      text: annotated(
        NETWORKS_ANNOTATION,
        `[${fill(ANNOTATION_BYTES, (i) => `{"name":"b","ipam-claim-reference":"${i}"}`)}]`,
        PHASE,
      ),
    },
    {
      what: 'networks in the comma form',
      text: annotated(
        NETWORKS_ANNOTATION,
        fill(ANNOTATION_BYTES, () => 'b'),
        PHASE,
      ),
    },
    {
      what: 'reported addresses',
      text: annotated(
        NETWORK_STATUS_ANNOTATION,
        `[{"name":"b","ips":[${fill(ANNOTATION_BYTES, (i) => `"${i}"`)}]}]`,
      ).replace(META, `${META},"ownerReferences":[${owner}]`),
    },
    { what: 'owners', text: `{${META},"ownerReferences":[${fill(OBJECT_BYTES, () => owner)}]}${PHASE}}` },
    { what: 'containers that ask for addresses', text: `{${META}},"spec":{"containers":[${containers}]}}` },
    { what: 'terms of node affinity', text: `{${META}},"spec":{${asking},${affinity}},${waiting}}` },
  ];
}

const POD_TRANSFORMS: Record<string, (pod: Pod) => unknown> = {
  'by an agent': transformNodePod,
  'by the controller': transformLauncher,
  'by ipam': (pod) => CLAIM_PODS.transform!(pod),
  'by capacity': (pod) => readPodRecord(pod, 0) ?? null,
  'by the webhook': (pod) => readPod(pod, 'request.object'),
};

function indexed<T extends KubeObject>(object: T, indexes: Indexes<T>): unknown {
  return [object, Object.values(indexes).map((valuesOf) => valuesOf(object))];
}

function workloads(): Hostile[] {
  const networks = fill(OBJECT_BYTES / 2, (i) => `{"name":"${i}","multus":{"networkName":"n${i}"}}`);
  const interfaces = fill(OBJECT_BYTES / 2, (i) => `{"name":"${i}","state":"absent"}`);
  const spec = `"spec":{"networks":[${networks}],"domain":{"devices":{"interfaces":[${interfaces}]}}}`;
  const request = JSON.stringify(`{${fill(OBJECT_BYTES, (i) => `"${i}":["10.0.0.5"]`)}}`);
  const annotations = `"metadata":{"annotations":{"${REQUESTED_ADDRESSES_ANNOTATION}":${request}}}`;
  const vm = (object: VirtualMachine) => indexed(transformVm(object), VM_INDEXES);
  const vmi = (object: VirtualMachineInstance) => indexed(transformVmi(object), VMI_INDEXES);
  const guestVm = (object: VirtualMachine) => indexed(transformGuestVm(object), VM_INDEXES);
  const guestVmi = (object: VirtualMachineInstance) => indexed(transformGuestVmi(object), VMI_INDEXES);
  const volumes = fill(
    OBJECT_BYTES,
    (i) => `{"name":"${i}","cloudInitNoCloud":{"networkDataSecretRef":{"name":"${i}"}}}`,
  );
  const guestReports = fill(OBJECT_BYTES, (i) => `{"name":"${i}","mac":"${i}","ipAddresses":["${i}"]}`);
  const guestAddresses = fill(OBJECT_BYTES, (i) => `"10.0.0.${i}"`);
  const reported = fill(OBJECT_BYTES, (i) => `{"name":"${i}","podInterfaceName":"p"}`);
  return [
    { what: 'a VM of many networks', text: `{${META}},"spec":{"template":{${spec}}}}`, transform: vm },
    { what: 'a VM of many requests', text: `{${META}},"spec":{"template":{${annotations},"spec":{}}}}`, transform: vm },
    { what: 'a VMI of many networks', text: `{${META}},${spec}}`, transform: vmi },
    { what: 'a guest of many networks', text: `{${META}},"spec":{"template":{${spec}}}}`, transform: guestVm },
    { what: 'a guest of many volumes', text: `{${META}},"spec":{"volumes":[${volumes}]}}`, transform: guestVmi },
    {
      what: 'a guest that reports many interfaces',
      text: `{${META}},"status":{"interfaces":[${guestReports}]}}`,
      transform: guestVmi,
    },
    {
      what: 'a guest that reports many addresses',
      text: `{${META}},"status":{"interfaces":[{"name":"a","ipAddresses":[${guestAddresses}]}]}}`,
      transform: guestVmi,
    },
    { what: 'a VMI of many interfaces', text: `{${META}},"status":{"interfaces":[${reported}]}}`, transform: vmi },
  ];
}

function claims(): Hostile[] {
  const both = (claim: IPAMClaim) => [shrinkServedClaim(claim), indexed(transformClaim(claim), CLAIM_INDEXES)];
  const long = 'x'.repeat(OBJECT_BYTES);
  const spec = '"spec":{"network":"blue","interface":"net1"}';
  return [
    {
      what: 'a claim of a long network',
      text: `{${META}},"spec":{"network":"${long}","interface":"i"}}`,
      transform: both,
    },
    {
      what: 'a claim of many addresses',
      text: `{${META}},${spec},"status":{"ips":[${fill(OBJECT_BYTES, (i) => `"${i}"`)}]}}`,
      transform: both,
    },
    {
      what: 'a claim of many conditions',
      text: `{${META}},${spec},"status":{"ips":[],"conditions":[${fill(OBJECT_BYTES, (i) => `{"type":"t${i}","status":"True","reason":"r","message":"m${i}","lastTransitionTime":""}`)}]}}`,
      transform: both,
    },
  ];
}

const HOSTILE: Hostile[] = [
  ...[60_000, 1_400_000].flatMap((bytes) =>
    nads(bytes).map(({ what, text }) => ({
      what: `a NAD of ${bytes} bytes: ${what}`,
      text,
      transform: transformNadWithPool,
    })),
  ),
  ...pods().flatMap(({ what, text }) =>
    Object.entries(POD_TRANSFORMS).map(([who, transform]) => ({
      what: `a pod, read ${who}: ${what}`,
      text,
      transform,
    })),
  ),
  ...workloads(),
  ...claims(),
];

/** Objects, lists, texts and numbers that can be reached, each once. */
function countValues(value: unknown, seen = new Set<unknown>()): number {
  if (typeof value !== 'object' || value === null) return 1;
  if (seen.has(value)) return 0;
  seen.add(value);
  const parts: unknown[] = value instanceof Map ? [...value].flat() : Object.values(value);
  return parts.reduce<number>((sum, part) => sum + countValues(part, seen), 1);
}

/** The least of four runs. @param limit one run below it is enough */
function cpuMicroseconds(work: () => unknown, limit = 0): number {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 4 && least >= limit; run++) {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, user + system);
  }
  return least;
}

describe('the memory that transformed objects of the largest allowed size need', function () {
  this.timeout(60_000);

  for (const { what, text, transform } of HOSTILE) {
    it(`is proportional to ${what}`, () => {
      const object = () => JSON.parse(text) as never;
      const given = object();
      expect(countValues(transform(given))).to.be.below(MOST_VALUES * text.length);
      const before = heapBytes();
      const kept = [transform(object()), transform(object())];
      expect(heapBytes() - before).to.be.below(kept.length * MOST_MEMORY * text.length + 200_000);
      const time = cpuMicroseconds(() => transform(given), SHORT_TIME);
      if (time >= SHORT_TIME) expect(time).to.be.below(MOST_TIME * cpuMicroseconds(object));
      expect(kept).to.have.length(2);
    });
  }
});
