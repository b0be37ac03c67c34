import { startControlPlane } from '../../bed/control-plane/control-plane.js';
import { createAll, type Manifest } from '../../bed/control-plane/objects.js';
import { clusterRoleBindingOf } from '../../bed/control-plane/service-accounts.js';
import { applyManifests, readInstallation } from '../../bed/holdfast/manifests.js';
import { clientAs } from '../../bed/story/users/service-account.js';
import { parseAddress } from '../../addressing/address/address.js';
import { createLease } from '../../addressing/lease/lease.js';
import { until } from '../../bed/processes/wait.js';
import type { Client } from '../../kube/client.js';
import { messageOf } from '../../kube/errors.js';
import { NODES } from '../../kube/resources.js';
import { AGENT_ACCOUNT } from '../cni/agent.js';
import type { Figure } from '../report.js';
import { percentile, runLoad } from '../load.js';
import { usageOf } from '../usage.js';
import { type LeaseVariant, leaseVariants, resourceOfVariant } from './variants.js';

const WRITES = 500;
const ROUNDS = 7;
/** Creates at once, as the target says. */
const WRITERS = 16;
const NODE = 'node-1';
const BARE = 'bare object';
const SHIPPED = 'shipped';

/** Measures what the schema, the rules and the policies of an AddressLease cost a kube-apiserver, for a create by an agent. */
export async function benchLeaseCost(withParts: boolean): Promise<Figure[]> {
  const plane = await startControlPlane({ progress: (line) => process.stderr.write(`  ${line}\n`) });
  try {
    const shipped = await readInstallation();
    const variants = leaseVariants(shipped, { withParts });
    await applyManifests(
      plane.client,
      shipped.filter(({ kind }) => INSTALLED.test(kind)),
    );
    await applyManifests(
      plane.client,
      variants.flatMap(({ objects }) => objects),
    );
    await createAll(plane.client, agentRights(variants));
    await plane.client.create(NODES, { metadata: { name: NODE } });
    const agent = await clientAs(plane, AGENT_ACCOUNT, { node: NODE });
    try {
      const writers = variants.map((variant) => new LeaseWriter(agent, variant));
      for (const writer of writers) await until(`${writer.variant.title} to be served`, () => writer.isReady());
      return await measure(writers, async () => (await usageOf(plane.apiServer.pid)).cpuSeconds);
    } finally {
      await agent.transport.close();
    }
  } finally {
    await plane.stop();
  }
}

/** Everything that decides about a write, except the rules of the shipped kinds, which nobody writes here. */
const INSTALLED =
  /^(Namespace|CustomResourceDefinition|ConfigMap|ServiceAccount|(Cluster)?Role(Binding)?|ValidatingAdmissionPolicy.*)$/;

/** Measures all variants in turns. Medians of the rounds, and of the ratios to the bare object in the same round. */
async function measure(writers: readonly LeaseWriter[], cpuSeconds: () => Promise<number>): Promise<Figure[]> {
  const costs = writers.map((): number[] => []);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [n, writer] of writers.entries()) {
      const before = await cpuSeconds();
      await writer.write(WRITES);
      // the first round is not counted: the server compiles and allocates
      if (round > 0) costs[n]!.push(((await cpuSeconds()) - before) * (1_000 / WRITES));
    }
    process.stderr.write(`  round ${String(round)} of ${String(ROUNDS)} done\n`);
  }
  const bare = costs[writers.findIndex(({ variant }) => variant.title === BARE)]!;
  return writers.flatMap(({ variant }, n) => {
    const name = (what: string) => `lease-cost: ${variant.title}, ${what}`;
    const ratios = costs[n]!.map((cost, round) => cost / bare[round]!);
    return [
      { name: name('CPU of kube-apiserver for a create'), value: percentile(costs[n]!, 0.5), unit: 'ms' },
      {
        name: name('to the bare object'),
        value: percentile(ratios, 0.5),
        unit: '',
        ...(variant.title === SHIPPED && { target: { atMost: 1.33 } }),
      },
    ];
  });
}

/** Allows agents to create the leases of all variants. */
function agentRights(variants: readonly LeaseVariant[]): Manifest[] {
  const metadata = { name: 'bench-leases' };
  const apiGroups = variants.map(({ group }) => group);
  return [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata,
      rules: [{ apiGroups, resources: ['addressleases'], verbs: ['create'] }],
    },
    clusterRoleBindingOf(AGENT_ACCOUNT, metadata.name, metadata.name),
  ];
}

/** Creates leases of one variant, of pods of the node of the agent. */
class LeaseWriter {
  readonly variant: LeaseVariant;
  readonly #client: Client;
  #count = 0;

  constructor(client: Client, variant: LeaseVariant) {
    this.#client = client;
    this.variant = variant;
  }

  async write(count: number): Promise<void> {
    await runLoad(() => this.#create(), { count, concurrency: WRITERS });
  }

  /** True if the kind is served, and its policies are in force: they deny the node and the labels of a lease. */
  async isReady(): Promise<boolean> {
    const { hasPolicies } = this.variant;
    const answer = await this.#create(hasPolicies ? 'node-2' : NODE, { labels: {} }).then(() => '', messageOf);
    return hasPolicies ? answer.includes('ValidatingAdmissionPolicy') : answer === '';
  }

  async #create(node = NODE, metadata: object = {}): Promise<void> {
    const n = this.#count++;
    const owner = { kind: 'Pod', namespace: 'bench', name: `pod-${String(n)}`, uid: crypto.randomUUID() } as const;
    const address = `10.${String(n >> 16)}.${String((n >> 8) & 255)}.${String(n & 255)}`;
    const mac = `02:00:00:${[16, 8, 0].map((bits) => ((n >> bits) & 255).toString(16).padStart(2, '0')).join(':')}`;
    const usage = { node, containerID: crypto.randomUUID().replaceAll('-', '').repeat(2), interface: 'net1', mac };
    const request = { address: parseAddress(address), addressSpace: 'bench', pool: 'bench', owner, ...usage };
    const write = createLease(request);
    const apiVersion = `${this.variant.group}/v1alpha1`;
    await this.#client.create(resourceOfVariant(this.variant), {
      ...write.object,
      apiVersion,
      metadata: { ...write.object.metadata, ...metadata },
    });
  }
}
