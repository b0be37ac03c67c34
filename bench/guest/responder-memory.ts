import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseAddress } from '../../addressing/address/address.js';
import { RESPONDERS_NAMESPACE, RESPONDER_INDEX } from '../../api/names.js';
import { openWorkspace } from '../../bed/control-plane/workspace.js';
import { nodeFlags } from '../../bed/holdfast/image.js';
import { startPackets } from '../../bed/holdfast/packets.js';
import type { Wire } from '../../bed/network/wire.js';
import { until } from '../../bed/processes/wait.js';
import { helperConfig } from '../../guest/responder-tables/protocol.js';
import { indexData } from '../../guest/responder-tables/published-index.js';
import { type EncodedTable, encodeTable, tableData } from '../../guest/responder-tables/published-table.js';
import { MAX_ENTRIES, type RunningGuest, buildTable } from '../../guest/responder-tables/table.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { CONFIG_MAPS } from '../../kube/resources.js';
import { ObjectTracker } from '../../kube/testing/object-tracker.js';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { claim, vmReference } from '../../test/objects/workload-objects.js';
import { addSilentHost, buildPrograms, onSegments, pidOf } from './segment.js';
import { MemoryCgroup } from '../scale/memory-cgroup.js';
import type { Figure } from '../report.js';
import { MemoryApiServer } from '../scale/api-server.js';
import { usageOf } from '../usage.js';

/** Of both containers together, which run in a cgroup with this limit. */
const TARGET_MIB = 128;
const SET = 'holdfast-responder-01234567';
const [API_PORT, HEALTH_PORT] = [18_443, 18_081];
const CHANGES = 4;
const BEAT_MS = 2_000;
const POOL = compiledPool({
  subnets: [{ cidr: '10.0.0.0/8', gateway: '10.0.0.1' }, { cidr: 'fd00:1::/64' }],
  guest: { attachment: 'blue', dns: { search: ['example.org'] }, dhcp: {} },
});
/** The longest names and options that a VM may have. */
const LONG_OPTIONS = [224, 225].map((code, index) => ({ code, value: '61'.repeat(index === 0 ? 255 : 253) }));

type Kind = 'ordinary' | 'hostile';

/** Measures both containers of a responder with the largest tables, while these change; skipped without real networks. */
export async function benchResponderMemory(): Promise<Figure[]> {
  return onSegments(async (wire, folder) => {
    await buildPrograms(folder);
    const figures: Figure[] = [];
    for (const [kind, count] of [
      ['ordinary', 1],
      ['ordinary', MAX_ENTRIES],
      ['hostile', MAX_ENTRIES],
    ] as const) {
      const cgroup = await MemoryCgroup.create(`${kind}${count}`, TARGET_MIB);
      const peaks = await measure(wire, folder, { kind, count, cgroup });
      const kills = await cgroup.kills();
      await cgroup.remove();
      const name = `responder with ${count} ${kind} guests`;
      const target = { atMost: TARGET_MIB };
      figures.push(
        { name: `${name}: kills with a limit of ${TARGET_MIB} MiB`, value: kills, unit: '', target: { atMost: 0 } },
        { name: `${name}: memory without files, peak`, value: cgroup.peakMiB, unit: 'MiB', target },
        { name: `${name}: RSS of Node.js, peak`, value: peaks.table, unit: 'MiB' },
        { name: `${name}: RSS of holdfast-packets, peak`, value: peaks.packets, unit: 'MiB' },
      );
    }
    return figures;
  });
}

interface Measured {
  readonly kind: Kind;
  readonly count: number;
  /** Both containers run in it. */
  readonly cgroup: MemoryCgroup;
}

async function measure(wire: Wire, folder: string, { kind, count, cgroup }: Measured) {
  const tables = await encodeTables(kind, count);
  const workspace = await openWorkspace({});
  const { servingKey: key, servingCert: cert, caBundle } = workspace.certificates;
  const tracker = new ObjectTracker();
  const publish = (table: EncodedTable) => {
    const metadata = { name: SET, namespace: RESPONDERS_NAMESPACE };
    tracker.put(CONFIG_MAPS, { metadata, ...tableData(table, { after: undefined, ageMs: 0 }, RESPONDER_INDEX) });
    return table;
  };
  let current = publish(tables[0]!);
  let beat = 0;
  const beats = setInterval(() => {
    const metadata = { name: RESPONDER_INDEX, namespace: RESPONDERS_NAMESPACE, uid: 'index' };
    const data = indexData(++beat, { ageMs: 0, versions: { [SET]: current.version }, behind: {} });
    tracker.put(CONFIG_MAPS, { metadata, data });
  }, BEAT_MS);
  const server = await MemoryApiServer.start(tracker, API_PORT, { key, cert });
  const account = await writeServiceAccount(join(folder, `${kind}${count}`), caBundle);
  const host = await addSilentHost(wire, `${kind}${count}`, 'bench0');
  const socket = join(folder, `${kind}${count}.sock`);
  const packets = await startPackets(wire, host, socket);
  const pid = await pidOf(`packets-linux.*--socket=${socket}`);
  await cgroup.add(pid);
  const responder = await startResponder(account, socket, cgroup);
  try {
    await untilStarted();
    for (const table of tables.slice(1)) {
      current = publish(table);
      await sleep(BEAT_MS);
    }
    const [table, helper] = [await usageOf(responder.pid!), await usageOf(pid)];
    return { table: table.peakMiB, packets: helper.peakMiB };
  } finally {
    clearInterval(beats);
    const ended = once(responder, 'exit');
    responder.kill();
    await ended;
    await packets.stop();
    await server.stop();
    await workspace.close();
  }
}

/** The first table, and those that follow it. */
async function encodeTables(kind: Kind, count: number): Promise<EncodedTable[]> {
  const guests = Array.from({ length: count }, (_, index) => guest(kind, index));
  const responders = [0, 1].map((each) => ({ name: `${SET}-${each}`, addresses: [] }));
  const config = helperConfig(POOL, responders[0]!, responders.slice(1), 'eth0')!;
  const tables: EncodedTable[] = [];
  for (let change = 0; change <= CHANGES; change++) {
    const table = runAtOnce(buildTable(POOL, guests.slice(Math.min(change, count - 1))));
    const pool = { name: 'blue', uid: 'blue-uid', network: 'blue', hasIpv6Gateway: false };
    tables.push(await encodeTable({ pool, configs: { [`${SET}-0`]: config }, table, probes: [] }));
  }
  return tables;
}

function guest(kind: Kind, index: number): RunningGuest {
  const isHostile = kind === 'hostile';
  const name = isHostile ? `web-${index}`.padEnd(240, 'x') : `web-${index}`;
  const hostname = name.slice(0, 63);
  const prefix = isHostile ? `${hostname}.${'s'.repeat(63)}.${'t'.repeat(63)}.${'u'.repeat(40)}` : hostname;
  const options = isHostile ? LONG_OPTIONS : index % 3 === 0 ? [{ code: 67, value: '61' }] : [];
  return {
    claim: claim({ name: isHostile ? name : `${name}.data`, owner: vmReference(randomUUID(), name) }),
    mac: `02:${randomBytes(5)
      .toString('hex')
      .replaceAll(/(..)(?=.)/g, '$1:')}`,
    addresses: [`10.0.${(index + 9) >> 8}.${(index + 9) & 255}`, `fd00:1::${(index + 9).toString(16)}`].map(
      parseAddress,
    ),
    nadOptions: undefined,
    hasDefaultRoute: true,
    dhcp: { hostname, prefix, options, ignored: [] },
  };
}

/** What the kubelet mounts: a process that reads a kubeconfig file loads much more code. */
async function writeServiceAccount(directory: string, caBundle: string): Promise<string> {
  await mkdir(directory);
  const files = { 'ca.crt': Buffer.from(caBundle, 'base64'), token: 'token', namespace: RESPONDERS_NAMESPACE };
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content);
  return directory;
}

/** Runs the responder as in its container, with the service account in its place. */
async function startResponder(account: string, socket: string, cgroup: MemoryCgroup): Promise<ChildProcess> {
  const place = '/run/secrets/kubernetes.io/serviceaccount';
  const script = `${cgroup.enter} && mount -t tmpfs tmpfs /run && mkdir -p ${place} && cp ${account}/* ${place}/ && exec "$@"`;
  const args = ['responder', '--pool=blue', `--packet-socket=${socket}`, '--guest-interface=eth0'];
  const addresses = [`--health-bind-address=127.0.0.1:${HEALTH_PORT}`, '--metrics-bind-address=127.0.0.1:18082'];
  const command = [process.execPath, ...(await nodeFlags()), 'dist/holdfast.js', ...args, ...addresses];
  return spawn('unshare', ['--mount', 'sh', '-c', script, 'sh', ...command], {
    env: {
      PATH: process.env.PATH,
      POD_NAME: `${SET}-0`,
      POD_NAMESPACE: RESPONDERS_NAMESPACE,
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: String(API_PORT),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

async function untilStarted(): Promise<void> {
  await until('the responder to be ready', async () => (await fetch(`http://127.0.0.1:${HEALTH_PORT}/readyz`)).ok);
}
