import { COMMON_SETTINGS, type CommonConfig, IPAM_SETTINGS } from './config.js';
import { LEAK_SETTINGS } from './ipam-config.js';
import {
  type Setting,
  type Settings,
  DIRECTORY_PATH,
  OBJECT_NAME,
  duration,
  parseObjectName,
  parseText,
  wholeNumber,
} from './setting.js';

/** The configuration of `holdfast install-plugin`, which installs the CNI plugin on a node and ends. */
export interface InstallConfig extends Pick<CommonConfig, 'logLevel'> {
  /** The runtime's directory of CNI plugins, as this process sees it. */
  readonly cniBinDir: string;
  /** The path of the same directory on the node, for messages. Absent: the same path. */
  readonly cniBinHostDir?: string | undefined;
}

const CNI_BIN_HOST_DIR: Setting<string | undefined> = {
  flag: 'cni-bin-host-dir',
  description: 'path of --cni-bin-dir on the node, for messages',
  defaultValue: undefined,
  defaultText: 'that of --cni-bin-dir',
  ...DIRECTORY_PATH,
};

export const INSTALL_SETTINGS: Settings<InstallConfig> = {
  logLevel: COMMON_SETTINGS.logLevel,
  cniBinDir: {
    flag: 'cni-bin-dir',
    placeholder: 'directory',
    description: "the runtime's directory of CNI plugins, in which the plugin is installed",
    defaultValue: '',
    defaultText: 'none, required',
    isRequired: true,
    parse: parseText,
  },
  cniBinHostDir: CNI_BIN_HOST_DIR,
};

/** File names, of which one must be present. */
export type PluginAlternatives = readonly string[];

const FILE_NAME = /^[A-Za-z0-9][\w.-]*$/;

/** Reads `multus/multus-shim,bridge`: groups separated by commas, alternatives by slashes. An empty text gives none. */
function parseRequiredPlugins(text: string): PluginAlternatives[] {
  if (text.trim() === '') return [];
  return text.split(',').map((group) =>
    group.split('/').map((name) => {
      if (!FILE_NAME.test(name.trim())) {
        throw new TypeError(
          'must be file names: a comma between plugins that are required, a slash between alternatives',
        );
      }
      return name.trim();
    }),
  );
}

/** The configuration of an agent, which serves one node and needs no leader election. */
export interface AgentConfig extends Omit<CommonConfig, 'leaderElect' | 'namespace'> {
  readonly nodeName: string;
  /** Holdfast's namespace, with the parameters of the admission policies. Agents run in another namespace. */
  readonly policiesNamespace: string;
  /** Directory of the socket and of the pending deletes. */
  readonly runDir: string;
  /** The runtime's directory of CNI plugins, as the agent sees it. Absent: it is neither checked nor written. */
  readonly cniBinDir?: string | undefined;
  /** The path of the same directory on the node, for messages. Absent: the same path. */
  readonly cniBinHostDir?: string | undefined;
  /** The plugins that must be in the directory. */
  readonly cniRequiredPlugins: readonly PluginAlternatives[];
  /** The `multusNamespace` of Multus: the namespace of a default network's NAD that is named without one. */
  readonly multusNamespace: string;
  /** The number of requests that are handled at the same time. */
  readonly requestWorkers: number;
  /** How long an ADD may wait for addresses. */
  readonly addTimeoutMs: number;
  /** How long the agent may answer from its caches while the API server is away. */
  readonly maxStalenessMs: number;
  /** How long a lease of this node must appear leaked before it is released. */
  readonly collectAfterMs: number;
}

/** No ADD of any agent takes longer. ipam waits this time before a pool moves to another address space. */
export const MAX_ADD_TIMEOUT_MS = 100_000;

const { leaderElect: _leaderElect, namespace: _namespace, ...NODE_SETTINGS } = COMMON_SETTINGS;

export const AGENT_SETTINGS: Settings<AgentConfig> = {
  ...NODE_SETTINGS,
  maxStalenessMs: IPAM_SETTINGS.maxStalenessMs,
  collectAfterMs: LEAK_SETTINGS.collectAfterMs,
  nodeName: {
    flag: 'node-name',
    description: 'name of the node whose pods are served',
    defaultValue: '',
    defaultText: 'none, required',
    isRequired: true,
    alternativeVariable: 'NODE_NAME',
    ...OBJECT_NAME,
  },
  policiesNamespace: {
    flag: 'policies-namespace',
    description: "namespace of the ConfigMap holdfast-policies, which names the namespace of KubeVirt's controller",
    defaultValue: COMMON_SETTINGS.namespace.defaultValue,
    ...OBJECT_NAME,
  },
  runDir: {
    flag: 'run-dir',
    description: 'directory of the socket agent.sock for the CNI plugin, and of the pending deletes',
    defaultValue: '/run/holdfast',
    ...DIRECTORY_PATH,
  },
  cniBinDir: {
    flag: 'cni-bin-dir',
    description:
      "the runtime's directory of CNI plugins, which must have the plugin; the agent installs it there if it can write",
    defaultValue: undefined,
    defaultText: 'none, the directory is not checked',
    ...DIRECTORY_PATH,
  },
  cniBinHostDir: CNI_BIN_HOST_DIR,
  cniRequiredPlugins: {
    flag: 'cni-required-plugins',
    placeholder: 'names',
    description:
      'other plugins that must be in --cni-bin-dir, so that the agent is ready; a slash separates alternatives; empty: none',
    defaultValue: [['multus', 'multus-shim'], ['bridge']],
    defaultText: 'multus/multus-shim,bridge',
    parse: parseRequiredPlugins,
  },
  multusNamespace: {
    flag: 'multus-namespace',
    placeholder: 'namespace',
    description: "the multusNamespace of Multus: the namespace of a pod's default network that is named without one",
    defaultValue: 'kube-system',
    parse: parseObjectName,
  },
  requestWorkers: {
    flag: 'request-workers',
    description: 'number of CNI requests that are handled at the same time; others are queued',
    defaultValue: 64, // a request mostly waits for the API server
    ...wholeNumber(1, 1024),
  },
  addTimeoutMs: {
    flag: 'add-timeout',
    description: 'how long a CNI ADD may wait for addresses before it fails and the kubelet retries it',
    ...duration('30s', 100, MAX_ADD_TIMEOUT_MS), // runtimes give a whole sandbox two minutes and more
  },
};
