import { join } from 'node:path';
import type { Client } from '../../kube/client.js';
import { until } from '../processes/wait.js';
import { createAll, readManifests, resourceOf, type Manifest } from './objects.js';

const CRD_FILES = [
  join(import.meta.dirname, '..', 'manifests', 'network-attachment-definitions.yaml'),
  join(import.meta.dirname, '..', '..', 'manifests', 'crds', 'ipamclaims.yaml'),
];

/** Creates the CRDs of Multus and of claims and those in `more`, and waits until all are established. */
export async function createCrds(client: Client, more: readonly Manifest[]): Promise<void> {
  const crds = [...more, ...(await Promise.all(CRD_FILES.map(readManifests))).flat()];
  await createAll(client, crds);
  await Promise.all(crds.map((crd) => waitEstablished(client, crd)));
}

async function waitEstablished(client: Client, crd: Manifest): Promise<void> {
  await until(`${crd.metadata.name} to be served`, async () => {
    const { status } = await client.get(resourceOf(crd), { name: crd.metadata.name });
    const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; status: string }[] };
    return conditions.some((condition) => condition.type === 'Established' && condition.status === 'True');
  });
}

/** A CRD of KubeVirt that accepts any fields, for tests that only read its objects. */
export function kubeVirtKind(plural: string, kind: string): Manifest {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.kubevirt.io` },
    spec: {
      group: 'kubevirt.io',
      scope: 'Namespaced',
      names: { plural, kind },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  };
}
