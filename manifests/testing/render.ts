import { cp, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { Manifest } from '../../bed/control-plane/objects.js';
import { capture } from '../../bed/processes/processes.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';
import { goTool } from '../../test/go-tools.js';
import { makeTemporaryFolder, removeTemporaryFolder } from '../../test/temporary-folder.js';

export const CHART = join(MANIFESTS, 'chart');
export const NAMESPACE = 'holdfast-system';
/** The oldest supported version of Kubernetes. */
const KUBERNETES = '1.31.0';

/** One way to install, as kustomize components in their order and as values of the chart. */
export interface Variant {
  readonly components: readonly string[];
  readonly values: object;
}

export const VARIANTS: Readonly<Record<string, Variant>> = {
  default: { components: [], values: {} },
  'controller-webhook-only': { components: ['controller-webhook-only'], values: { ipam: { enabled: false } } },
  'without-capacity': { components: ['without-capacity'], values: { capacity: { enabled: false } } },
  'all-in-one': {
    components: ['all-in-one', 'without-capacity'],
    values: { allInOne: { enabled: true }, capacity: { enabled: false } },
  },
  'cert-manager': { components: ['cert-manager'], values: { certManager: { enabled: true } } },
  openshift: { components: ['openshift'], values: { openshift: { enabled: true } } },
  'primary-networks': { components: ['primary-networks'], values: { primaryNetworks: { enabled: true } } },
  'guard-counters': { components: ['guard-counters'], values: { guardCounters: { enabled: true } } },
  'prometheus-operator': { components: ['prometheus-operator'], values: { prometheusOperator: { enabled: true } } },
  k3s: { components: ['k3s'], values: { agent: { cniBinDir: '/var/lib/rancher/k3s/data/cni' } } },
  'controller-webhook-only on OpenShift with cert-manager': {
    components: ['cert-manager', 'openshift', 'prometheus-operator', 'controller-webhook-only'],
    values: {
      ...{ ipam: { enabled: false }, prometheusOperator: { enabled: true } },
      ...{ certManager: { enabled: true }, openshift: { enabled: true } },
    },
  },
  'all-in-one on OpenShift with cert-manager': {
    components: ['all-in-one', 'cert-manager', 'openshift', 'guard-counters', 'primary-networks'],
    values: {
      ...{ allInOne: { enabled: true }, certManager: { enabled: true } },
      ...{ openshift: { enabled: true }, guardCounters: { enabled: true }, primaryNetworks: { enabled: true } },
    },
  },
  'all-in-one without capacity with cert-manager': {
    components: ['all-in-one', 'without-capacity', 'cert-manager'],
    values: { allInOne: { enabled: true }, capacity: { enabled: false }, certManager: { enabled: true } },
  },
};

/** What `kustomize build` prints for the base with these components and patches. */
export function kustomizeBase(components: readonly string[], patches: readonly object[] = []): Promise<Manifest[]> {
  return withFolder(async (folder) => {
    // kustomize takes relative paths only
    const manifests = relative(folder, MANIFESTS);
    const kustomization = {
      resources: [join(manifests, 'base')],
      components: components.map((name) => join(manifests, 'components', name)),
      patches,
    };
    await writeFile(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization));
    return kustomizeBuild(folder);
  });
}

export async function kustomizeBuild(folder: string): Promise<Manifest[]> {
  return read(await capture(await goTool('kustomize'), ['build', folder]));
}

/** A registry of the image, which the chart needs; kustomize does not. */
export const REGISTRY_VALUE = '--set=image.registry=registry.example';

/** What the chart renders, with its hooks and without the kinds in `crds/`. */
export function helmTemplate(values: object, namespace = NAMESPACE): Promise<Manifest[]> {
  return withValues(values, async (file) => {
    const args = ['template', 'holdfast', CHART, '--namespace', namespace, '--kube-version', KUBERNETES];
    if (!JSON.stringify(values).includes('"registry"')) args.push(REGISTRY_VALUE);
    return read(await capture(await goTool('helm'), [...args, '--values', file]));
  });
}

/** Copies the chart for Kubernetes of any version: the bed's API server has none, so it is too old for the chart. */
export async function copyChart(folder: string): Promise<void> {
  await cp(CHART, folder, { recursive: true, dereference: true });
  const file = join(folder, 'Chart.yaml');
  await writeFile(file, (await readFile(file, 'utf8')).replace(/^kubeVersion: .*$/m, ''));
}

/** @param work receives the path of a file with the values */
export function withValues<T>(values: object, work: (file: string) => Promise<T>): Promise<T> {
  return withFolder(async (folder) => {
    const file = join(folder, 'values.json');
    await writeFile(file, JSON.stringify(values));
    return work(file);
  });
}

async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  // a relative path does not lead out of a link
  const folder = await makeTemporaryFolder('holdfast-render-');
  try {
    return await work(folder);
  } finally {
    await removeTemporaryFolder(folder);
  }
}

function read(text: string): Manifest[] {
  const documents = parseAllDocuments(text).map((document) => document.toJS() as Manifest | null);
  return documents.filter((object) => object !== null);
}

export function keyOf({ apiVersion, kind, metadata }: Manifest): string {
  return `${apiVersion} ${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
}
