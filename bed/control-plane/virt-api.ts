import { until } from '../processes/wait.js';
import type { ControlPlane } from './control-plane.js';
import { RARE_COLLECTION } from './garbage-collection.js';
import { KUBEVIRT_NAMESPACE, type KubeVirtManifests } from './kubevirt.js';
import { createAll, resourceOf, type Manifest } from './objects.js';
import { findFreePorts, withFreePorts } from '../processes/ports.js';
import type { Child, ChildOptions } from '../processes/processes.js';
import { httpsGet, waitReady } from './ready.js';
import { serviceAccountKubeconfigPath, writeServiceAccountKubeconfig } from './service-accounts.js';
import type { Workspace } from './workspace.js';

const ACCOUNT = { namespace: KUBEVIRT_NAMESPACE, name: 'kubevirt-apiserver' };
const HEALTH = '/apis/subresources.kubevirt.io/v1/healthz';

/** virt-api. It can be launched before the API server, because its preparation takes seconds and does not need it. */
export class VirtApi {
  readonly #site: Workspace;
  readonly #binary: string;
  #launched: { readonly child: Child; readonly port: number } | undefined;

  constructor(site: Workspace, binary: string) {
    this.#site = site;
    this.#binary = binary;
  }

  async launch(): Promise<void> {
    const [port] = await findFreePorts(1);
    this.#launched = this.#launchOn(port!);
  }

  /** Gives it the token of its service account, waits until it is ready, and registers it with the API server. */
  async connect(plane: ControlPlane, manifests: KubeVirtManifests): Promise<void> {
    await writeServiceAccountKubeconfig(plane, ACCOUNT);
    const port = await withFreePorts(1, async ([fresh]) => {
      const { child, port } = this.#launched ?? this.#launchOn(fresh!);
      this.#launched = undefined;
      await this.#waitReady(child, port);
      this.#site.processes.keepRunning(child, this.#optionsFor(port));
      return port;
    });
    await createAll(plane.client, serviceObjects(port));
    await createAll(plane.client, [
      ...manifests.webhooks.map((configuration) => withWebhookCa(configuration, plane.caBundle)),
      ...manifests.apiServices.map((service) => withApiServiceCa(service, plane.caBundle)),
    ]);
    await Promise.all(manifests.apiServices.map((service) => waitAvailable(plane, service)));
  }

  #launchOn(port: number): { child: Child; port: number } {
    return { child: this.#site.processes.start(this.#optionsFor(port)), port };
  }

  #optionsFor(port: number): ChildOptions {
    const { certificates, workDir } = this.#site;
    const { servingCert, servingKey } = certificates;
    return {
      name: 'virt-api',
      command: this.#binary,
      env: RARE_COLLECTION,
      args: [
        `--kubeconfig=${serviceAccountKubeconfigPath(workDir, ACCOUNT)}`,
        '--listen=127.0.0.1',
        `--port=${port}`,
        '--subresources-only',
        `--tls-cert-file=${servingCert}`,
        `--tls-key-file=${servingKey}`,
        `--handler-cert-file=${servingCert}`,
        `--handler-key-file=${servingKey}`,
      ],
    };
  }

  async #waitReady(child: Child, port: number): Promise<void> {
    const url = `https://127.0.0.1:${port}${HEALTH}`;
    await waitReady(child, async () => (await httpsGet(url, this.#site.certificates.ca)).includes('"ok"'));
  }
}

/** The API server rejects loopback addresses in an EndpointSlice, unless the address type is FQDN. */
function serviceObjects(port: number): Manifest[] {
  const metadata = { namespace: KUBEVIRT_NAMESPACE };
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...metadata, name: 'virt-api' },
      spec: { ports: [{ name: 'https', port: 443, targetPort: port, protocol: 'TCP' }] },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...metadata, name: 'virt-api-1', labels: { 'kubernetes.io/service-name': 'virt-api' } },
      addressType: 'FQDN',
      ports: [{ name: 'https', port, protocol: 'TCP' }],
      endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready: true } }],
    },
  ];
}

function withWebhookCa(configuration: Manifest, caBundle: string): Manifest {
  const { webhooks } = configuration as unknown as { webhooks: { clientConfig: object }[] };
  return {
    ...configuration,
    webhooks: webhooks.map((webhook) => ({ ...webhook, clientConfig: { ...webhook.clientConfig, caBundle } })),
  };
}

function withApiServiceCa(service: Manifest, caBundle: string): Manifest {
  return { ...service, spec: { ...(service.spec as object), caBundle } };
}

async function waitAvailable({ client }: ControlPlane, service: Manifest): Promise<void> {
  await until(`APIService ${service.metadata.name} to be available`, async () => {
    const { status } = await client.get(resourceOf(service), { name: service.metadata.name });
    const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; status: string }[] };
    return conditions.some((condition) => condition.type === 'Available' && condition.status === 'True');
  });
}
