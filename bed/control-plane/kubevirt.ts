import { join } from 'node:path';
import { KUBEVIRTS } from '../../kube/resources.js';
import type { ControlPlane } from './control-plane.js';
import { RARE_COLLECTION } from './garbage-collection.js';
import { createAll, readManifests, type Manifest } from './objects.js';
import { withFreePorts } from '../processes/ports.js';
import { capture } from '../processes/processes.js';
import { httpsGet, waitReady } from './ready.js';
import { writeServiceAccountKubeconfig } from './service-accounts.js';
import { kubeVirtVersion } from '../build/versions.js';

export const KUBEVIRT_NAMESPACE = 'kubevirt';
/** The service account of virt-handler. */
export const VIRT_HANDLER = { namespace: KUBEVIRT_NAMESPACE, name: 'kubevirt-handler' };

/** The objects that virt-operator creates on a cluster, from its own generators. */
export interface KubeVirtManifests {
  readonly crds: Manifest[];
  readonly rbac: Manifest[];
  readonly apiServices: Manifest[];
  readonly webhooks: Manifest[];
}

/** @param virtController path of the binary, which contains the generators too */
export async function generateManifests(virtController: string): Promise<KubeVirtManifests> {
  return JSON.parse(await capture(virtController, ['manifests'])) as KubeVirtManifests;
}

/** Creates KubeVirt's service accounts and RBAC objects. The namespace must exist. */
export async function createRbac({ client }: ControlPlane, manifests: KubeVirtManifests): Promise<void> {
  await createAll(client, manifests.rbac);
}

/** Creates the KubeVirt object, with the status that virt-operator writes after the installation. */
export async function deployKubeVirt({ client }: ControlPlane): Promise<void> {
  await createAll(client, await readManifests(join(import.meta.dirname, '..', 'manifests', 'kubevirt.yaml')));
  const { version, featureGates = [], disabledFeatureGates } = kubeVirtVersion();
  const status = {
    phase: 'Deployed', // without a phase the object is ignored
    defaultArchitecture: 'amd64', // without it every VMI is rejected: "unsupported architecture"
    observedKubeVirtVersion: version,
    targetKubeVirtVersion: version,
    operatorVersion: version,
  };
  const ref = { namespace: KUBEVIRT_NAMESPACE, name: 'kubevirt' };
  await client.patch(KUBEVIRTS, ref, { type: 'merge', body: { status } }, { subresource: 'status' });
  const path = '/spec/configuration/developerConfiguration/featureGates/-';
  const operations = featureGates.map((value) => ({ op: 'add', path, value }) as const);
  if (operations.length > 0) await client.patch(KUBEVIRTS, ref, { type: 'json', operations });
  if (disabledFeatureGates === undefined) return;
  const spec = { configuration: { developerConfiguration: { disabledFeatureGates } } };
  await client.patch(KUBEVIRTS, ref, { type: 'merge', body: { spec } });
}

/** Starts virt-controller with the token of its service account, and waits until it is the leader. */
export async function startVirtController(plane: ControlPlane, binary: string): Promise<void> {
  const account = { namespace: KUBEVIRT_NAMESPACE, name: 'kubevirt-controller' };
  const kubeconfig = await writeServiceAccountKubeconfig(plane, account);
  const { servingCert, servingKey, ca } = plane.certificates;
  const { version } = kubeVirtVersion();
  await withFreePorts(1, async ([port]) => {
    const options = {
      name: 'virt-controller',
      command: binary,
      env: RARE_COLLECTION,
      args: [
        `--kubeconfig=${kubeconfig}`,
        '--listen=127.0.0.1',
        `--port=${port!}`,
        `--launcher-image=registry.test/virt-launcher:${version}`,
        `--exporter-image=registry.test/virt-exportserver:${version}`,
        `--prom-cert-file=${servingCert}`,
        `--prom-key-file=${servingKey}`,
      ],
    };
    const child = plane.processes.start(options);
    await waitReady(child, async () => (await httpsGet(`https://127.0.0.1:${port!}/leader`, ca)).includes('"true"'));
    plane.processes.keepRunning(child, options);
  });
}
