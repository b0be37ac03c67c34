import { startControlPlane } from '../bed/control-plane/control-plane.js';
import { readInstallation, applyManifests } from '../bed/holdfast/manifests.js';
import { leaseNamed } from '../bed/story/addresses.js';
import { until } from '../bed/processes/wait.js';
import type { Client } from '../kube/client.js';
import { resourcePath } from '../kube/resource.js';
import { ADDRESS_LEASES } from '../kube/resources.js';
import { loadCredentials } from '../kube/transport/credentials.js';
import { runLoad } from './load.js';
import type { Figure } from './report.js';
import { ManyWatches } from './watches/many-watches.js';
import { usageOf } from './usage.js';

const WRITES = 2_000;
const WRITERS = 16;
/** One address for each lease that the bench writes. */
const SPACE = 'bench';

interface WatchSet {
  readonly title: string;
  readonly count: number;
  readonly selectorOf: (n: number) => string;
}

const byNode = (count: number): WatchSet => ({
  title: `${count.toLocaleString('en')} watches by the field spec.node`,
  count,
  selectorOf: (n) => `spec.node=node-${String(n)}`,
});
const NONE: WatchSet = { title: 'no watch', count: 0, selectorOf: () => '' };
const BY_NAME: WatchSet = {
  title: '5,000 watches by name',
  count: 5_000,
  selectorOf: (n) => `metadata.name=node-${String(n)}`,
};
/** The first and the last are the same, so that a change of the machine's speed shows. */
const SETS = [NONE, byNode(100), byNode(1_000), byNode(5_000), BY_NAME, NONE];

/** Measures what a write of an AddressLease costs a kube-apiserver while many agents watch leases. */
export async function benchWatches(): Promise<Figure[]> {
  const plane = await startControlPlane({ progress: (line) => process.stderr.write(`  ${line}\n`) });
  try {
    const crds = (await readInstallation()).filter(({ kind }) => kind === 'CustomResourceDefinition');
    await applyManifests(plane.client, crds);
    const credentials = await loadCredentials({ kubeconfig: plane.kubeconfig });
    const leases = new LeaseWriter(plane.client);
    await until('leases to be served', () => leases.write(WRITERS).then(() => true, () => false)); // oxfmt-ignore
    const figures: Figure[] = [];
    for (const set of SETS) {
      const watches = await ManyWatches.open(credentials, pathsOf(set));
      await leases.write(WRITES / 4);
      const before = await usageOf(plane.apiServer.pid);
      const { p95Ms, perSecond } = await leases.write(WRITES);
      const after = await usageOf(plane.apiServer.pid);
      watches.close();
      const cpuMs = ((after.cpuSeconds - before.cpuSeconds) * 1_000) / WRITES;
      figures.push(
        { name: `watches: ${set.title}: CPU of kube-apiserver for a write`, value: cpuMs, unit: 'ms' },
        { name: `watches: ${set.title}: writes`, value: perSecond, unit: '/s' },
        { name: `watches: ${set.title}: duration of a write, 95th percentile`, value: p95Ms, unit: 'ms' },
        { name: `watches: ${set.title}: RSS of kube-apiserver`, value: after.rssMiB, unit: 'MiB' },
      );
    }
    return figures;
  } finally {
    await plane.stop();
  }
}

function pathsOf({ count, selectorOf }: WatchSet): string[] {
  const path = resourcePath(ADDRESS_LEASES, {});
  return Array.from({ length: count }, (_, n) => {
    const fieldSelector = encodeURIComponent(selectorOf(n));
    return `${path}?watch=true&resourceVersion=0&timeoutSeconds=3600&fieldSelector=${fieldSelector}`;
  });
}

/** Creates leases of pods of 5,000 nodes, one after the other. */
class LeaseWriter {
  readonly #client: Client;
  #count = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  write(count: number): ReturnType<typeof runLoad> {
    return runLoad(() => this.#create(this.#count++), { count, concurrency: WRITERS });
  }

  async #create(n: number): Promise<void> {
    const owner = { kind: 'Pod', namespace: 'bench', name: `pod-${String(n)}`, uid: `uid-${String(n)}` } as const;
    const usage = { node: `node-${String(n % 5_000)}`, containerID: `c${String(n)}`, interface: 'net1' };
    const address = `10.${String(n >> 16)}.${String((n >> 8) & 255)}.${String(n & 255)}`;
    const lease = leaseNamed(SPACE, address, { pool: SPACE, owner });
    await this.#client.create(ADDRESS_LEASES, { ...lease, spec: { ...lease.spec, ...usage } });
  }
}
