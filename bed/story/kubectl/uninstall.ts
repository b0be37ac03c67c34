import { join } from 'node:path';
import { type ObjectMeta, objectKey } from '../../../api/meta.js';
import type { Client } from '../../../kube/client.js';
import { isNotFound } from '../../../kube/errors.js';
import type { Resource } from '../../../kube/resource.js';
import { NAMESPACES } from '../../../kube/resources.js';
import type { BedWithHoldfast } from '../../environment.js';
import {
  MANIFESTS,
  applyManifests,
  readInstallation,
  readKustomization,
  withoutReplicas,
} from '../../holdfast/manifests.js';
import { installHoldfast } from '../../holdfast/install.js';
import type { HoldfastProcess } from '../../holdfast/process.js';
import { until } from '../../processes/wait.js';
import { Kubectl } from './kubectl.js';

const WORKLOADS = ['Deployment', 'DaemonSet', 'PodDisruptionBudget', 'NetworkPolicy'];

/** Installs Holdfast as a new bed has it: without workloads, because its processes run on this machine. Starts those that do not run. */
export async function reinstall(bed: BedWithHoldfast): Promise<void> {
  await installHoldfast(bed, bed.webhook.ports);
  for (const process of processesOf(bed)) if (!process.running) await process.start();
}

/** Applies all shipped manifests with their workloads, which have no pods. */
export async function installWorkloads(bed: BedWithHoldfast): Promise<void> {
  await reinstall(bed);
  const workloads = (await readInstallation()).filter(({ kind }) => WORKLOADS.includes(kind));
  await applyManifests(bed.client, workloads.map(withoutReplicas));
}

/** Deletes the base with `kubectl delete -k`, and ends the processes, as the end of their pods does. */
export async function deleteBase(bed: BedWithHoldfast): Promise<void> {
  const base = join(MANIFESTS, 'base');
  const kubectl = await Kubectl.open(bed.kubeconfig);
  await kubectl.succeed(['delete', '-k', base, '--ignore-not-found', '--wait=false']);
  await kubectl.close();
  await Promise.all(processesOf(bed).map((process) => process.stop()));
  const gone = (await readKustomization(base))
    .filter(({ kind }) => kind === 'Namespace')
    .map(({ metadata }) => metadata.name);
  await until('the namespaces are gone', async () => {
    const { items } = await bed.client.list(NAMESPACES);
    return !items.some(({ metadata }) => gone.includes(metadata.name));
  });
}

function processesOf({ controller, webhook, ipam, agents }: BedWithHoldfast): HoldfastProcess[] {
  return [controller, webhook, ipam, ...(agents?.all ?? [])];
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
