import type { Manifest } from '../../bed/control-plane/objects.js';
import { readInstallation } from '../../bed/holdfast/manifests.js';

export interface Rule {
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
  verbs: string[];
}

export interface Probe {
  httpGet: { port: string };
  initialDelaySeconds?: number;
  timeoutSeconds?: number;
}

export interface Container {
  name: string;
  args: string[];
  env: { name: string; value?: string }[];
  volumeMounts?: { name: string; mountPath: string }[];
  ports: { name: string; containerPort: number }[];
  resources: { requests: { cpu: string; memory: string }; limits: { memory: string } };
  securityContext: object;
  livenessProbe: Probe;
  readinessProbe: Probe;
}

export interface PodTemplate {
  metadata: { labels: Record<string, string> };
  spec: {
    serviceAccountName: string;
    priorityClassName: string;
    nodeSelector: object;
    tolerations: { key?: string; operator: string; effect?: string; tolerationSeconds?: number }[];
    topologySpreadConstraints: object[];
    securityContext: object;
    containers: Container[];
    volumes: { name: string }[];
  };
}

/** The fields of all kinds that the tests of manifests read. Each kind has only some of them. */
export interface Shipped extends Manifest {
  rules: Rule[];
  roleRef: object;
  subjects: object[];
  webhooks: { clientConfig: { service: { name: string; namespace: string } } }[];
  spec: {
    template: PodTemplate;
    selector: object;
    podSelector: object;
    ports: { port: number; targetPort: string }[];
    failurePolicy: string;
    paramKind?: { kind: string };
    policyName: string;
    paramRef?: { name: string; selector?: object; parameterNotFoundAction: string };
  };
}

/** The processes that Deployments run. */
export const DEPLOYED = ['controller', 'webhook', 'ipam', 'capacity', 'guest'] as const;

/** The objects that an installation applies. */
export class Installation {
  readonly objects: readonly Shipped[];

  private constructor(objects: readonly Shipped[]) {
    this.objects = objects;
  }

  static async read(): Promise<Installation> {
    return new Installation((await readInstallation()) as Shipped[]);
  }

  static of(objects: readonly Manifest[]): Installation {
    return new Installation(objects as readonly Shipped[]);
  }

  /** @throws {Error} if it is not shipped */
  find(kind: string, name: string): Shipped {
    const found = this.objects.find((object) => object.kind === kind && object.metadata.name === name);
    if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
    return found;
  }

  /** The Deployments and the DaemonSet. */
  workloads(): Shipped[] {
    return this.objects.filter(({ kind }) => ['Deployment', 'DaemonSet'].includes(kind));
  }

  /** Of a Deployment. */
  template(name: string): PodTemplate {
    return this.find('Deployment', name).spec.template;
  }

  /** The rules of a process, for the whole cluster and for its namespace. */
  rulesOf(process: string): Rule[] {
    return ['ClusterRole', 'Role'].flatMap((kind) => this.find(kind, `holdfast-${process}`).rules);
  }
}
