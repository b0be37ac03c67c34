import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SECRETS } from '../../kube/resources.js';
import type { ImageRoot, Mount } from '../../test/image/container.js';
import type { ControlPlane } from '../control-plane/control-plane.js';
import { type Manifest, createAll } from '../control-plane/objects.js';
import { findFreePorts } from '../processes/ports.js';
import type { Child } from '../processes/processes.js';
import { waitReady } from '../control-plane/ready.js';
import { requestToken } from '../control-plane/service-accounts.js';

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** The fields of a Deployment or DaemonSet that the kubelet uses. */
interface Workload extends Manifest {
  readonly spec: { readonly template: Template };
}

interface Template {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly serviceAccountName: string;
    readonly securityContext: { readonly runAsUser?: number };
    readonly initContainers?: readonly Container[];
    readonly containers: readonly Container[];
    readonly volumes?: readonly Volume[];
  };
}

interface Container {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly fieldRef: { readonly fieldPath: string } };
  }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
}

interface Volume {
  readonly name: string;
  readonly hostPath?: { readonly path: string };
  readonly secret?: { readonly secretName: string };
}

/** A container that runs, with its ports on 127.0.0.1 by name. */
export interface RunningContainer {
  readonly child: Child;
  readonly ports: Readonly<Record<string, number>>;
}

/**
 * A node that runs shipped pods from the files of the image, as a kubelet and a container runtime do: with the arguments, variables,
 * users and volumes of their manifests, and a service account token. Only the addresses to listen on are replaced by free ports.
 */
export class ImageNode {
  readonly name = 'node-1';
  readonly #plane: ControlPlane;
  readonly #image: ImageRoot;
  readonly #folder: string;
  #versions = 0;

  private constructor(plane: ControlPlane, image: ImageRoot, folder: string) {
    this.#plane = plane;
    this.#image = image;
    this.#folder = folder;
  }

  /** @param folder for the volumes of pods */
  static async create(plane: ControlPlane, image: ImageRoot, folder: string): Promise<ImageNode> {
    const node = new ImageNode(plane, image, folder);
    await createAll(plane.client, [{ apiVersion: 'v1', kind: 'Node', metadata: { name: node.name } }]);
    return node;
  }

  /** The path on this machine of a path of the node. */
  hostPath(path: string): string {
    return join(this.#folder, 'host', path);
  }

  /** Runs the first init container until it ends. */
  async runInit(workload: Manifest): Promise<{ status: number | null; stderr: string }> {
    const [container] = templateOf(workload).spec.initContainers ?? [];
    return this.#image.run((await this.#options(workload, container!)).options);
  }

  /** Starts the container of a pod, and waits until its readiness probe succeeds. */
  async start(workload: Manifest): Promise<RunningContainer> {
    const [container] = templateOf(workload).spec.containers;
    const { options, ports } = await this.#options(workload, container!);
    const child = this.#plane.processes.start({ name: container!.name, ...(await this.#image.container(options)) });
    await waitReady(child, async () => (await fetch(`http://127.0.0.1:${String(ports.health)}/readyz`)).ok);
    return { child, ports };
  }

  /** Writes the data of a Secret into the volume of running containers, all files at once. */
  async syncSecret(namespace: string, name: string): Promise<string> {
    const { data = {} } = await this.#plane.client.get(SECRETS, { namespace, name });
    const files = Object.entries(data).map(([file, value]) => [file, Buffer.from(value, 'base64')] as const);
    return this.#project(join('secrets', namespace, name), Object.fromEntries(files));
  }

  async #options(workload: Manifest, container: Container) {
    const { metadata, spec } = templateOf(workload);
    const { namespace = '' } = workload.metadata;
    const free = await findFreePorts(container.ports?.length ?? 0);
    const ports = (container.ports ?? []).map((port, index) => ({ ...port, free: free[index]! }));
    const args = container.args.map((arg) => {
      const [, flag, number] = /^(--[a-z-]+-bind-address)=:(\d+)$/.exec(arg) ?? [];
      if (flag === undefined) return arg;
      return `${flag}=127.0.0.1:${String(ports.find(({ containerPort }) => containerPort === Number(number))!.free)}`;
    });
    const fields: Readonly<Record<string, string>> = {
      'metadata.namespace': namespace,
      'spec.nodeName': this.name,
      ...Object.fromEntries(
        Object.entries(metadata.annotations ?? {}).map(([key, value]) => [`metadata.annotations['${key}']`, value]),
      ),
    };
    const variables = (container.env ?? []).map(({ name, value, valueFrom }) => [
      name,
      value ?? fields[valueFrom!.fieldRef.fieldPath]!,
    ]);
    const { hostname, port } = new URL(this.#plane.server);
    const env = {
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: port,
      ...(Object.fromEntries(variables) as Record<string, string>),
    };
    const account = { namespace, name: spec.serviceAccountName };
    const mounts: Mount[] = [{ source: await this.#serviceAccount(account), target: SERVICE_ACCOUNT }];
    for (const { name, mountPath, readOnly = false } of container.volumeMounts ?? []) {
      const volume = spec.volumes!.find((one) => one.name === name)!;
      mounts.push({ source: await this.#source(volume, namespace), target: mountPath, writable: !readOnly });
    }
    const uid = spec.securityContext.runAsUser;
    return {
      options: { args, env, mounts, ...(uid !== undefined && { uid }) },
      ports: Object.fromEntries(ports.map(({ name, free: number }) => [name, number])),
    };
  }

  async #source({ hostPath, secret }: Volume, namespace: string): Promise<string> {
    if (secret !== undefined) return this.syncSecret(namespace, secret.secretName);
    const path = this.hostPath(hostPath!.path);
    await mkdir(path, { recursive: true });
    return path;
  }

  async #serviceAccount(account: { namespace: string; name: string }): Promise<string> {
    const { client, caBundle } = this.#plane;
    return this.#project(join('tokens', account.namespace, account.name), {
      token: await requestToken(client, account, { node: this.name }),
      'ca.crt': Buffer.from(caBundle, 'base64'),
      namespace: account.namespace,
    });
  }

  /** Replaces the files of a volume by moving one link, as the kubelet does. @returns the folder of the volume */
  async #project(name: string, files: Readonly<Record<string, string | Buffer>>): Promise<string> {
    const folder = join(this.#folder, name);
    const version = `..${String(++this.#versions)}`;
    await mkdir(join(folder, version), { recursive: true });
    for (const [file, content] of Object.entries(files)) {
      await writeFile(join(folder, version, file), content);
      await rm(join(folder, file), { force: true });
      await symlink(join('..data', file), join(folder, file));
    }
    await symlink(version, join(folder, '..data_tmp'));
    await rename(join(folder, '..data_tmp'), join(folder, '..data'));
    return folder;
  }
}

function templateOf(workload: Manifest): Template {
  return (workload as Workload).spec.template;
}
