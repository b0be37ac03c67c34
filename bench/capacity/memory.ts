import type { AddressLease } from '../../api/address-lease.js';
import { capacityResource } from '../../api/capacity.js';
import type { Pod } from '../../api/pod.js';
import { type PodRecord, readPodRecord } from '../../capacity/pod-record.js';
import { Inventory, readInventoryEntry } from '../../capacity/inventory.js';
import { createLease } from '../../addressing/lease/lease.js';
import { heapBytes } from '../../test/heap.js';
import type { Figure } from '../report.js';
import { uuid } from '../uuid.js';

const LEASES = 100_000;
const PODS = 50_000;
const POOLS = 20;
const MIB = 2 ** 20;

/** Measures the memory of leases and pods, parsed from JSON so that strings are not shared. */
export function memory(): Figure[] {
  const before = heapBytes();
  const held = stockOf((n) => lease(n, false));
  const withHeld = heapBytes();
  const released = stockOf((n) => lease(n, true));
  const withReleased = heapBytes();
  const pods = new Map<string, PodRecord>();
  for (let n = 0; n < PODS; n++) {
    const record = readPodRecord(JSON.parse(JSON.stringify(pod(n))) as Pod, 0);
    if (record !== undefined) pods.set(`tenant-${n % 500}/pod-${n}`, record);
  }
  const withPods = heapBytes();
  if (held === released || pods.size !== PODS) throw new Error(`${pods.size} pods are known, not ${PODS}`);
  return [
    figure(`stock of ${LEASES.toLocaleString('en')} leases that pods hold`, withHeld - before),
    figure(`stock of ${LEASES.toLocaleString('en')} released leases`, withReleased - withHeld),
    figure(`records of ${PODS.toLocaleString('en')} pods`, withPods - withReleased),
  ];
}

function figure(name: string, bytes: number): Figure {
  return { name: `capacity: ${name}`, value: bytes / MIB, unit: 'MiB' };
}

function stockOf(leaseAt: (n: number) => AddressLease): Inventory {
  const stock = new Inventory();
  for (let n = 0; n < LEASES; n++)
    stock.add(readInventoryEntry(JSON.parse(JSON.stringify(leaseAt(n))) as AddressLease));
  return stock;
}

function lease(n: number, isReleased: boolean): AddressLease {
  const pool = `tenant-pool-${n % POOLS}`;
  const write = createLease({
    // scattered: half of the addresses are free
    address: { family: 4, value: (10n << 24n) + 2n * BigInt((n * 7919) % LEASES) },
    addressSpace: pool,
    pool,
    owner: { kind: 'Pod', namespace: `tenant-${n % 500}`, name: `pod-${n}`, uid: uuid(n) },
    node: `node-${n % 1_000}`,
    containerID: uuid(n),
    interface: 'net1',
  });
  const metadata = { ...write.object.metadata, uid: uuid(n), resourceVersion: String(1_000_000 + n) };
  const releasedAt = isReleased ? { releasedAt: new Date(Date.UTC(2026, 0, 1) + n).toISOString() } : {};
  return { metadata, spec: { ...write.object.spec, ...releasedAt } };
}

function pod(n: number): object {
  const resources = { requests: { cpu: '1', [capacityResource(`tenant-pool-${n % POOLS}`)]: '1' } };
  return {
    metadata: { namespace: `tenant-${n % 500}`, name: `pod-${n}`, uid: uuid(n), resourceVersion: String(n) },
    spec: { nodeName: `node-${n % 1_000}`, containers: [{ name: 'c', resources }] },
    status: { phase: 'Running', podIP: '10.244.0.1' },
  };
}
