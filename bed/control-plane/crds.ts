import { join } from 'node:path';
import type { Client } from '../../kube/client.js';
import { until } from '../processes/wait.js';
import { createAll, readManifests, type Manifest } from './objects.js';

const CRD_FILES = [
  join(import.meta.dirname, '..', 'manifests', 'network-attachment-definitions.yaml'),
  join(import.meta.dirname, '..', '..', 'manifests', 'crds', 'ipamclaims.yaml'),
];

/** Creates the CRDs of Multus and of claims and those in `more`, and waits until all are served. */
export async function createCrds(client: Client, more: readonly Manifest[]): Promise<void> {
  const crds = [...more, ...(await Promise.all(CRD_FILES.map(readManifests))).flat()];
  await createAll(client, crds);
  const kinds = new Map<string, string[]>();
  for (const { spec } of crds) {
    const { group, names, versions } = spec as CrdSpec;
    for (const { name, served } of versions)
      if (served) kinds.set(`${group}/${name}`, [...(kinds.get(`${group}/${name}`) ?? []), names.plural]);
  }
  await Promise.all([...kinds].map(([version, plurals]) => waitServed(client, version, plurals)));
}

interface CrdSpec {
  readonly group: string;
  readonly names: { readonly plural: string };
  readonly versions: readonly { readonly name: string; readonly served: boolean }[];
}

/** Reads the discovery, which lists established kinds, because CRDs have up to a megabyte. */
async function waitServed({ transport }: Client, version: string, plurals: readonly string[]): Promise<void> {
  await until(`${plurals.join()} of ${version} to be served`, async () => {
    const list = await transport.request({ method: 'GET', path: `/apis/${version}` });
    const served = new Set((list as { resources: { name: string }[] }).resources.map(({ name }) => name));
    return plurals.every((plural) => served.has(plural));
  });
}

/** A CRD of KubeVirt that accepts any fields, for tests that only read its objects. */
export function kubeVirtKind(plural: string, kind: string): Manifest {
  const openAPIV3Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  return namespacedKind(`${plural}.kubevirt.io`, kind, openAPIV3Schema);
}

/** The CRD of another project's kind in version v1. @param name `plural.group` */
export function namespacedKind(name: string, kind: string, openAPIV3Schema: object): Manifest {
  const [plural = ''] = name.split('.');
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name },
    spec: {
      group: name.slice(plural.length + 1),
      scope: 'Namespaced',
      names: { plural, kind },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  };
}
