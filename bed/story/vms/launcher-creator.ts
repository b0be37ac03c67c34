import { NETWORKS_ANNOTATION } from '../../../api/names.js';
import type { Pod } from '../../../api/pod.js';
import { Client } from '../../../kube/client.js';
import { type Credentials, loadCredentials } from '../../../kube/transport/credentials.js';
import { PODS } from '../../../kube/resources.js';
import { Transport } from '../../../kube/transport/transport.js';
import type { ClusterAccess } from '../../control-plane/kubeconfig.js';
import { KUBEVIRT_NAMESPACE } from '../../control-plane/kubevirt.js';
import { writeServiceAccountKubeconfig } from '../../control-plane/service-accounts.js';
import { withoutReferences } from '../claims.js';

/** As long as an API server waits for a webhook. */
export const ADMISSION_DEADLINE_MS = 10_000;

/** Asks an API server to create copies of launchers, without creating them. */
export class LauncherCreator {
  readonly #client: Client;

  private constructor(client: Client) {
    this.#client = client;
  }

  /** @param server URL of the API server; default: the cluster's first one */
  static async connect(
    cluster: ClusterAccess & { client: Client; workDir: string },
    server?: string,
  ): Promise<LauncherCreator> {
    // KubeVirt's own identity: a policy lets only it create launchers
    const account = { namespace: KUBEVIRT_NAMESPACE, name: 'kubevirt-controller' };
    const kubeconfig = await writeServiceAccountKubeconfig(cluster, account);
    const credentials = await loadCredentials({ kubeconfig });
    const there: Credentials = {
      server: server ?? credentials.server,
      tls: () => credentials.tls(),
      headers: () => credentials.headers(),
      refresh: () => credentials.refresh(),
    };
    return new LauncherCreator(new Client(new Transport(there)));
  }

  /** @throws {Error} if the copy is rejected, or admitted without its claim */
  async admitCopy(launcher: Pod): Promise<void> {
    const { namespace, labels, annotations, ownerReferences } = launcher.metadata;
    const networks = withoutReferences(annotations?.[NETWORKS_ANNOTATION] ?? '[]');
    const copy = {
      metadata: {
        name: '',
        generateName: 'probe-launcher-',
        namespace,
        labels,
        ownerReferences,
        annotations: { ...annotations, [NETWORKS_ANNOTATION]: networks },
      },
      spec: { containers: [{ name: 'c', image: 'registry.test/c' }] },
    } as Pod;
    const made = await this.#client.create(PODS, copy, { dryRun: true, deadlineMs: ADMISSION_DEADLINE_MS });
    if (!made.metadata.annotations?.[NETWORKS_ANNOTATION]?.includes('ipam-claim-reference'))
      throw new Error('the copy of a launcher was admitted without its claim');
  }

  async close(): Promise<void> {
    await this.#client.transport.close();
  }
}
