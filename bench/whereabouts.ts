import { join } from 'node:path';
import type { Pod } from '../api/pod.js';
import { IP_POOLS } from '../cli/whereabouts/plan-types.js';
import { type MigrateOptions, migrateWhereabouts } from '../cli/whereabouts/migrate.js';
import { CONCURRENCY, withClient } from '../cli/cluster-client.js';
import { type ControlPlane, startControlPlane } from '../bed/control-plane/control-plane.js';
import { createCrds } from '../bed/control-plane/crds.js';
import { createAll, readManifests } from '../bed/control-plane/objects.js';
import { MANIFESTS } from '../bed/holdfast/manifests.js';
import { until } from '../bed/processes/wait.js';
import type { Client } from '../kube/client.js';
import { systemClock } from '../kube/clock.js';
import { forEachParallel } from '../kube/run-in-slices.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, NAMESPACES, NETWORK_ATTACHMENT_DEFINITIONS, PODS } from '../kube/resources.js';
import { makeLargeCluster } from '../cli/testing/migration-world.js';
import type { Figure } from './report.js';

const ALLOCATIONS = 10_000;
const NAMESPACE = 'a';

/** Measures `kubectl holdfast migrate whereabouts` for ten thousand pods on a control plane without nodes. */
export async function benchWhereabouts(): Promise<Figure[]> {
  const plane = await startControlPlane();
  try {
    await prepare(plane);
    const dry = await timed(plane, false);
    const apply = await timed(plane, true);
    const again = await timed(plane, true);
    const { items } = await plane.client.listAs(ADDRESS_LEASES, ({ metadata }) => metadata.name);
    const figure = (name: string, value: number, unit: string) => ({ name: `whereabouts: ${name}`, value, unit });
    return [
      figure('leases made', items.length, ''),
      figure('plan', dry, 's'),
      figure('apply', apply, 's'),
      figure('leases a second, with plan and second look', items.length / apply, '/s'),
      figure('apply again, all done', again, 's'),
    ];
  } finally {
    await plane.stop();
  }
}

async function prepare({ client }: ControlPlane): Promise<void> {
  const files = [
    join(import.meta.dirname, '..', 'bed', 'manifests', 'whereabouts.yaml'),
    join(MANIFESTS, 'crds', 'addressleases.yaml'),
    join(MANIFESTS, 'crds', 'addresspools.yaml'),
  ];
  await createCrds(client, (await Promise.all(files.map(readManifests))).flat());
  for (const kind of [ADDRESS_LEASES, ADDRESS_POOLS]) await until('kinds are served', () => client.list(kind as never));
  await client.create(NAMESPACES, { metadata: { name: NAMESPACE } });
  await createAll(client, [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: NAMESPACE, name: 'default' } },
  ]);
  // a clean whereabouts cluster: every allocation belongs to a running pod
  const { nads, ipPools, pods } = makeLargeCluster(ALLOCATIONS, { everyGone: Infinity, everyBroken: Infinity });
  for (const { metadata, spec } of nads) {
    const { namespace, name } = metadata;
    await client.create(NETWORK_ATTACHMENT_DEFINITIONS, {
      metadata: { name, ...(namespace !== undefined && { namespace }) },
      ...(spec && { spec }),
    });
  }
  for (const pool of ipPools) await client.create(IP_POOLS, pool);
  await createPods(client, pods);
}

async function createPods(client: Client, pods: readonly Pod[]): Promise<void> {
  await forEachParallel(pods, CONCURRENCY, async ({ metadata: { namespace, name, annotations } }) => {
    const spec = { containers: [{ name: 'c', image: 'registry.test/c' }] };
    await client.create(PODS, {
      metadata: { name, ...(namespace !== undefined && { namespace }), ...(annotations && { annotations }) },
      spec,
    } as Pod);
  });
}

/** @returns seconds */
async function timed({ kubeconfig }: ControlPlane, apply: boolean): Promise<number> {
  const options: MigrateOptions = { apply, namespace: 'kube-system', skipConflicts: false, output: 'table' };
  const lines: string[] = [];
  const print = (line: string) => void lines.push(line);
  const began = performance.now();
  const done = await withClient({ kubeconfig }, ({ client }) =>
    migrateWhereabouts(options, {
      client,
      clock: systemClock,
      concurrency: CONCURRENCY,
      clusterFlags: '',
      print,
      printStatus: print,
    }),
  );
  if (!done) throw new Error(lines.join('\n'));
  return (performance.now() - began) / 1_000;
}
