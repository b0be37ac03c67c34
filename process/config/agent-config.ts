import { COMMON_SETTINGS, IPAM_SETTINGS } from './config.js';
import { LEAK_SETTINGS } from './ipam-config.js';
import {
  type ConfigOf,
  DIRECTORY_PATH,
  OBJECT_NAME,
  duration,
  parseObjectName,
  parseText,
  settings,
  wholeNumber,
} from './setting.js';

const CNI_BIN_HOST_DIR = {
  flag: 'cni-bin-host-dir',
  description: 'path of --cni-bin-dir on the node, for messages',
  defaultValue: undefined,
  defaultText: 'that of --cni-bin-dir',
  ...DIRECTORY_PATH,
};

/** The configuration of `holdfast install-plugin`, which installs the CNI plugin on a node and ends. */
export const INSTALL_SETTINGS = settings({
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
});
export type InstallConfig = ConfigOf<typeof INSTALL_SETTINGS>;

/** File names, of which one must be present. */
export type PluginAlternatives = readonly string[];

const FILE_NAME = /^[A-Za-z0-9][\w.-]*$/;

/** Reads `multus/multus-shim,bridge`: groups separated by commas, alternatives by slashes. An empty text gives none. */
function parseRequiredPlugins(text: string): readonly PluginAlternatives[] {
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

/** No ADD of any agent takes longer. ipam waits this time before a pool moves to another address space. */
export const MAX_ADD_TIMEOUT_MS = 100_000;

const { leaderElect: _leaderElect, namespace: _namespace, ...NODE_SETTINGS } = COMMON_SETTINGS;

/** The configuration of an agent, which serves one node and needs no leader election. */
export const AGENT_SETTINGS = settings({
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
});
export type AgentConfig = ConfigOf<typeof AGENT_SETTINGS>;
