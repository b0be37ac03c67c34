import { nameFirst } from '../../api/json.js';
import type { KubeObject } from '../../api/meta.js';
import { objectKey } from '../../api/meta.js';
import { docsUrl } from '../../process/docs-url.js';
import { type CheckReport, checkReads } from '../doctor/check-report.js';
import { type Finding, warningOf, errorOf } from '../doctor/finding.js';
import {
  DEFAULT_NAMESPACES,
  type InstalledWorkload,
  type WebhookConfiguration,
  hasOwnName,
  isOwn,
} from '../installation.js';
import { valueOf } from '../reader.js';
import type { ObservedTarget } from './observe.js';
import { REQUIREMENTS } from './requirements.js';

const MAX_NAMED = 5;
const IPAM_EXTENSIONS = /^kubevirt-ipam(-claims)?-controller-manager$/;
const OVN_KUBERNETES = /^ovnkube-(node|control-plane|master)/;

export function checkInstallation(observed: ObservedTarget): CheckReport {
  const { deployments, daemonSets, ownNamespaces } = observed;
  return checkReads('holdfast', [deployments, daemonSets, ownNamespaces], () => {
    const own = ownWorkloads(observed);
    const message =
      own.length === 0
        ? 'is not installed yet'
        : `is installed: ${nameFirst(own.map(objectKey), 2 * MAX_NAMED)}. kubectl holdfast doctor checks it`;
    return { message, findings: [] };
  });
}

export function ownWorkloads({ deployments, daemonSets, ownNamespaces }: ObservedTarget): InstalledWorkload[] {
  const namespaces = valueOf(ownNamespaces, new Set(DEFAULT_NAMESPACES));
  return [...valueOf(deployments, []), ...valueOf(daemonSets, [])].filter((object) => isOwn(namespaces, object));
}

/** Pods of Holdfast connect to the API server. They use no port of a node. */
export function checkPorts({ endpoints }: ObservedTarget): CheckReport {
  return checkReads('ports', [endpoints], () => {
    const ports = [...new Set(valueOf(endpoints, []).flatMap((slice) => slice.ports ?? []))].flatMap(
      ({ port }) => port ?? [],
    );
    const others = ports.filter((port) => !REQUIREMENTS.apiServerPorts.some((each) => each === port));
    const allowed = REQUIREMENTS.apiServerPorts.join(' and ');
    const problem = `listens on port ${others.join(', ')}, and the shipped NetworkPolicies allow ${allowed}`;
    const remedy = `add the port: ${docsUrl('how-to/install.md#allow-another-port-of-the-api-server')}`;
    return {
      message: `the API server listens on port ${ports.join(', ')}; Holdfast uses no port of a node`,
      findings: others.length === 0 ? [] : [warningOf('ports', 'API server', problem, remedy)],
    };
  });
}

/** What may stop Holdfast's pods, or their connections. */
export function checkObstacles(observed: ObservedTarget): CheckReport {
  const { namespaces, networkPolicies, webhooks } = observed;
  return checkReads('policies', [namespaces, networkPolicies, webhooks], () => ({
    message: 'nothing is known that stops pods of Holdfast or their connections',
    findings: [
      ...valueOf(namespaces, []).flatMap(checkPodSecurity),
      ...checkNetworkPolicies(valueOf(networkPolicies, [])),
      ...valueOf(webhooks, []).filter(reviewsAllPods).map(reviewFinding),
    ],
  }));
}

/** Agents mount folders of the node, and responders have the capability NET_RAW. */
const NEED_PRIVILEGES: readonly string[] = DEFAULT_NAMESPACES.slice(1);

function checkPodSecurity({ metadata: { name, labels } }: KubeObject): Finding[] {
  const level = labels?.['pod-security.kubernetes.io/enforce'];
  if (!NEED_PRIVILEGES.includes(name) || level === undefined || level === 'privileged') return [];
  const problem = `exists with the Pod Security level ${level}, which refuses pods of Holdfast in it`;
  const remedy = `kubectl label --overwrite namespace ${name} pod-security.kubernetes.io/enforce=privileged`;
  return [errorOf('policies', `Namespace ${name}`, problem, remedy)];
}

function checkNetworkPolicies(policies: readonly KubeObject[]): Finding[] {
  const others = policies.filter((policy) => !hasOwnName(policy));
  if (others.length === 0) return [];
  const names = others.map((policy) => `${policy.kind ?? ''} ${objectKey(policy)}`);
  const problem = `${nameFirst(names, MAX_NAMED)} may stop connections of Holdfast`;
  const remedy = `let pods of Holdfast reach the API server, and API servers the ports 9443 and 9444: ${docsUrl('how-to/install.md#restrict-access-to-the-webhooks')}`;
  return [warningOf('policies', 'network policies', problem, remedy)];
}

/** Those of policy engines: they review pods of every kind, and refuse them if they do not answer. */
function reviewsAllPods({ metadata: { name }, webhooks = [] }: WebhookConfiguration): boolean {
  if (/^(holdfast|virt-|kubevirt|kubemacpool)/.test(name)) return false;
  return webhooks.some(
    ({ failurePolicy = 'Fail', rules = [] }) =>
      failurePolicy === 'Fail' &&
      rules.some(({ resources = [] }) => resources.some((each) => each === 'pods' || each === '*')),
  );
}

function reviewFinding({ kind = 'WebhookConfiguration', metadata: { name } }: WebhookConfiguration): Finding {
  const problem =
    'reviews pods: its policies may refuse agents, which mount folders of the node, and launchers while it is down';
  const remedy = `check that its policies allow the pods of the namespaces ${DEFAULT_NAMESPACES.join(', ')}`;
  return warningOf('policies', `${kind} ${name}`, problem, remedy);
}

/** Other software that writes claims, or addresses into them. */
export function checkOtherIpams({ deployments, daemonSets }: ObservedTarget): CheckReport {
  return checkReads('ipams', [deployments, daemonSets], () => {
    const workloads = [...valueOf(deployments, []), ...valueOf(daemonSets, [])];
    const named = (pattern: RegExp) => workloads.filter(({ metadata }) => pattern.test(metadata.name)).map(objectKey);
    const findings = named(IPAM_EXTENSIONS).map((key) => {
      const problem = 'kubevirt/ipam-extensions creates claims of the same names; both may run only for the move';
      const remedy = `follow ${docsUrl('how-to/move-from-ipam-extensions.md')}`;
      return warningOf('ipams', `Deployment ${key}`, problem, remedy);
    });
    for (const key of named(OVN_KUBERNETES).slice(0, 1)) {
      const problem =
        'it writes addresses into the claims of its networks, which a policy of Holdfast restricts to known writers';
      const remedy = `set statusWriters: ${docsUrl('how-to/install.md#allow-other-writers')}`;
      findings.push(warningOf('ipams', `OVN-Kubernetes (${key})`, problem, remedy));
    }
    return { message: 'no other software is known to write IPAMClaims', findings };
  });
}
