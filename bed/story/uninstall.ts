import { setTimeout as pause } from 'node:timers/promises';
import { type ObjectMeta, isBeingDeleted, objectKey } from '../../api/meta.js';
import type { Pod } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import { isNotFound } from '../../kube/errors.js';
import type { Resource } from '../../kube/resource.js';
import { PODS } from '../../kube/resources.js';
import { type Manifest, resourceOf } from '../control-plane/objects.js';
import type { BedWithHoldfast } from '../environment.js';
import { applyManifests, readInstallation, withoutReplicas } from '../holdfast/manifests.js';
import { installHoldfast } from '../holdfast/install.js';
import type { HoldfastProcess } from '../holdfast/process.js';

/** On pods that stand for a process of this machine. */
const PROCESS_LABEL = 'e2e/process';
const WORKLOADS = ['Deployment', 'DaemonSet', 'PodDisruptionBudget', 'NetworkPolicy'];

/**
 * The shipped workloads on a bed. Their processes run on this machine, and each has a pod that no node runs. If the pod is deleted, its process
 * stops, and then the pod ends. So a command that waits for the pods waits for the processes.
 */
export class InstalledWorkloads {
  readonly #bed: BedWithHoldfast;
  readonly #stopping = new AbortController();
  #working: Promise<void> = Promise.resolve();

  private constructor(bed: BedWithHoldfast) {
    this.#bed = bed;
  }

  /** Applies all shipped manifests, and starts the processes that do not run. */
  static async install(bed: BedWithHoldfast): Promise<InstalledWorkloads> {
    await installHoldfast(bed, bed.webhook.ports);
    const workloads = (await readInstallation()).filter(({ kind }) => WORKLOADS.includes(kind));
    await applyManifests(bed.client, workloads.map(withoutReplicas));
    const installed = new InstalledWorkloads(bed);
    for (const [name, process] of installed.#processes()) {
      const workload = workloads.find(({ metadata }) => metadata.name === `holdfast-${process.name}`)!;
      const { metadata } = await bed.client.get(resourceOf(workload), workload.metadata);
      await bed.client.create(PODS, podOf(name, { ...workload, metadata }));
      if (!process.running) await process.start();
    }
    installed.#working = installed.#stopProcesses();
    return installed;
  }

  /** Ends the observation of the pods. */
  async release(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
  }

  async #stopProcesses(): Promise<void> {
    const { client } = this.#bed;
    while (!this.#stopping.signal.aborted) {
      const { items } = await client.list(PODS, { labelSelector: PROCESS_LABEL });
      await Promise.all(items.filter(isBeingDeleted).map((pod) => this.#end(pod)));
      await pause(100);
    }
  }

  async #end({ metadata }: Pod): Promise<void> {
    await this.#processes()
      .get(metadata.labels?.[PROCESS_LABEL] ?? '')
      ?.stop();
    await this.#bed.client.patch(PODS, metadata, { type: 'merge', body: { metadata: { finalizers: null } } });
  }

  #processes(): Map<string, HoldfastProcess> {
    const { controller, webhook, ipam, agents } = this.#bed;
    const all = [controller, webhook, ipam, ...(agents?.all ?? [])];
    return new Map(all.map((process, index) => [`${process.name}-${String(index)}`, process]));
  }
}

/** `kind namespace/name` of every object in the cluster that Holdfast or its manifests created, sorted. */
export async function objectsOfHoldfast(client: Client): Promise<string[]> {
  const kinds = await servedKinds(client);
  const found = await Promise.all(
    kinds.map(async (resource) => {
      const { items } = await client.list(resource, { metadataOnly: true }).catch((error: unknown) => {
        if (isNotFound(error)) return { items: [] };
        throw error;
      });
      const own = items.filter(({ metadata }) => resource.group === 'ipam.holdfast.dev' || isOwn(metadata));
      return own.map((object) => `${resource.kind} ${objectKey(object)}`);
    }),
  );
  return found.flat().sort();
}

interface ApiGroups {
  items: {
    metadata: { name?: string };
    versions: {
      version: string;
      resources: { resource: string; responseKind: { kind: string }; scope: string; verbs: string[] | null }[];
    }[];
  }[];
}

/** Objects about other objects, which the API server removes. */
const FOLLOWING = ['events', 'apiservices'];

/** The kinds that can be listed, by discovery. */
async function servedKinds(client: Client): Promise<Resource[]> {
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  const answers = await Promise.all(
    ['/api', '/apis'].map((path) => client.transport.request({ method: 'GET', path, accept })),
  );
  return (answers as ApiGroups[])
    .flatMap(({ items }) => items)
    .flatMap(({ metadata: { name: group = '' }, versions: [preferred] }) =>
      (preferred?.resources ?? [])
        .filter(({ resource, verbs }) => verbs?.includes('list') && !FOLLOWING.includes(resource))
        .map(({ resource: plural, responseKind: { kind }, scope }) => {
          return { group, version: preferred!.version, plural, kind, namespaced: scope === 'Namespaced' };
        }),
    );
}

function isOwn({ name, labels, finalizers }: ObjectMeta): boolean {
  return (
    /^holdfast(-|$)|\.ipam\.holdfast\.dev$/.test(name) ||
    labels?.['app.kubernetes.io/name'] === 'holdfast' ||
    (finalizers ?? []).some((each) => each.startsWith('ipam.holdfast.dev/') || each === 'kubevirt.io/persistent-ipam')
  );
}

function podOf(process: string, { apiVersion, kind, metadata, spec }: Manifest): Pod {
  const { labels } = (spec as { template: { metadata: ObjectMeta } }).template.metadata;
  const { name, namespace, uid = '' } = metadata;
  const container = {
    name: 'process',
    image: 'none',
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  };
  return {
    metadata: {
      name: `${name}-${process}`,
      labels: { ...labels, [PROCESS_LABEL]: process },
      finalizers: [PROCESS_LABEL],
      ownerReferences: [{ apiVersion, kind, name, uid, controller: false }],
      ...(namespace !== undefined && { namespace }),
    },
    spec: {
      schedulerName: 'none',
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [container],
    },
  } as Pod;
}
