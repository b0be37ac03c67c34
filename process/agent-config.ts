import { COMMON_SETTINGS, type CommonConfig, IPAM_SETTINGS } from './config.js';
import { type Settings, duration, parseObjectName, parseText, wholeNumber } from './setting.js';

/** An agent has a node, and no rival for it. */
export interface AgentConfig extends Omit<CommonConfig, 'leaderElect' | 'namespace'> {
  readonly nodeName: string;
  /** Holdfast's namespace, in which the parameters of the admission policies are; agents have one of their own. */
  readonly policiesNamespace: string;
  /** Holds the socket, and what is left to do. */
  readonly runDir: string;
  /** Where the node's runtime looks for CNI plugins. Without it no plugin is installed. */
  readonly cniBinDir?: string | undefined;
  /** Where Multus looks for the NAD of a pod's default network that names no namespace: its `multusNamespace`. */
  readonly multusNamespace: string;
  /** How many requests are worked on at once. */
  readonly requestWorkers: number;
  /** How long an ADD may wait for its claim's addresses. */
  readonly addTimeoutMs: number;
  /** For how long it may answer from what it knows while the API server is away. */
  readonly maxStalenessMs: number;
  /** How long a lease of this node must look leaked before it is released. */
  readonly collectAfterMs: number;
}

/** No ADD of any agent takes longer: ipam waits for that before a pool moves to another address space. */
export const MAX_ADD_TIMEOUT_MS = 100_000;

const { leaderElect: _leaderElect, namespace: _namespace, ...NODE_SETTINGS } = COMMON_SETTINGS;

export const AGENT_SETTINGS: Settings<AgentConfig> = {
  ...NODE_SETTINGS,
  maxStalenessMs: IPAM_SETTINGS.maxStalenessMs,
  collectAfterMs: IPAM_SETTINGS.collectAfterMs,
  nodeName: {
    flag: 'node-name',
    placeholder: 'name',
    description: 'the node whose pods are served: its name in Kubernetes',
    defaultValue: '',
    defaultText: 'none: it must be given',
    isRequired: true,
    alternativeVariable: 'NODE_NAME',
    parse: parseObjectName,
  },
  policiesNamespace: {
    flag: 'policies-namespace',
    placeholder: 'name',
    description: "namespace of the ConfigMap holdfast-policies, which says where KubeVirt's controller runs",
    defaultValue: COMMON_SETTINGS.namespace.defaultValue,
    parse: parseObjectName,
  },
  runDir: {
    flag: 'run-dir',
    placeholder: 'directory',
    description: 'where the CNI plugin finds the socket agent.sock, and leaves what is to be released later',
    defaultValue: '/run/holdfast',
    parse: parseText,
  },
  cniBinDir: {
    flag: 'cni-bin-dir',
    placeholder: 'directory',
    description: "the runtime's folder of CNI plugins, into which ours is installed",
    defaultValue: undefined,
    defaultText: 'it is installed by somebody else',
    parse: parseText,
  },
  multusNamespace: {
    flag: 'multus-namespace',
    placeholder: 'namespace',
    description: "Multus' own multusNamespace: where it looks for a pod's default network that names no namespace",
    defaultValue: 'kube-system',
    parse: parseObjectName,
  },
  requestWorkers: {
    flag: 'request-workers',
    placeholder: 'number',
    description: 'how many CNI requests are worked on at once; more wait in a line',
    defaultValue: 64, // a request mostly waits for the API server
    parse: wholeNumber(1, 1024),
  },
  addTimeoutMs: {
    flag: 'add-timeout',
    placeholder: 'duration',
    description: 'how long an ADD may wait for its addresses before the runtime is told to try again',
    defaultValue: 30_000, // runtimes give a whole sandbox two minutes and more
    defaultText: '30s',
    parse: duration(100, MAX_ADD_TIMEOUT_MS),
  },
};
