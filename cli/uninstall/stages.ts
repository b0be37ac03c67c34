import { LEASES } from '../../kube/leader-election.js';
import {
  ADDRESS_BLOCKS,
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  CONFIG_MAPS,
  IPAM_CLAIMS,
  NAMESPACES,
  PODS,
  POD_DISRUPTION_BUDGETS,
  SECRETS,
} from '../../kube/resources.js';
import { type Resource, clusterResource, namespacedResource } from '../../kube/resource.js';
import {
  CLUSTER_ROLE_BINDINGS,
  DAEMON_SETS,
  DEPLOYMENTS,
  POLICIES,
  POLICY_BINDINGS,
  RBAC,
  STATEFUL_SETS,
  WEBHOOK_KINDS,
} from '../installation.js';

const POLICY_KINDS: readonly Resource[] = [POLICY_BINDINGS, POLICIES];
export const ROLES = namespacedResource(RBAC, 'roles', 'Role');
export const ROLE_BINDINGS = namespacedResource(RBAC, 'rolebindings', 'RoleBinding');
const MONITORING = 'monitoring.coreos.com/v1';

/** Objects of an installation that are removed together. */
export interface Stage {
  readonly title: string;
  readonly kinds: readonly Resource[];
  /** What has to happen before the next stage: the pods are gone, every API server knows of the change, or the objects are gone. */
  readonly then?: 'pods-gone' | 'settled' | 'gone';
  /** Selects the pods that have to be gone. Default: all pods of Holdfast. */
  readonly podLabels?: string;
}

/**
 * The kinds of an installation in the order of their removal.
 * - Agents first: without them no pod gets an address while the webhook and the policies that protect claims disappear. Pods that end
 *   write pending deletes.
 * - Webhook configurations before the processes that serve them: otherwise launchers would be refused.
 * - Responders after the process that would create them again, and their claims after them: something uses the addresses until then.
 * - Policies after the processes, because they protect claims. Before their ConfigMap, without which they deny.
 * - Rights after the processes: a process without rights only fails.
 * - ClusterRoleBindings last: they tell the namespaces of the installation. Without their ClusterRoles they grant nothing.
 */
export const STAGES: readonly Stage[] = [
  { title: 'agents', kinds: [DAEMON_SETS], then: 'pods-gone', podLabels: 'app.kubernetes.io/component=agent' },
  { title: 'webhook configurations', kinds: WEBHOOK_KINDS, then: 'settled' },
  {
    title: 'processes',
    // a failed `helm test` leaves a pod without a workload
    kinds: [DEPLOYMENTS, PODS],
    then: 'pods-gone',
    podLabels: 'app.kubernetes.io/component!=responder',
  },
  { title: 'responders', kinds: [STATEFUL_SETS], then: 'pods-gone' },
  { title: 'claims of responders', kinds: [IPAM_CLAIMS] },
  { title: 'admission policies', kinds: POLICY_KINDS, then: 'settled' },
  {
    title: 'rights, services and settings',
    kinds: [
      namespacedResource(MONITORING, 'servicemonitors', 'ServiceMonitor'),
      namespacedResource(MONITORING, 'podmonitors', 'PodMonitor'),
      namespacedResource(MONITORING, 'prometheusrules', 'PrometheusRule'),
      namespacedResource('cert-manager.io/v1', 'certificates', 'Certificate'),
      namespacedResource('cert-manager.io/v1', 'issuers', 'Issuer'),
      POD_DISRUPTION_BUDGETS,
      namespacedResource('networking.k8s.io/v1', 'networkpolicies', 'NetworkPolicy'),
      namespacedResource('v1', 'resourcequotas', 'ResourceQuota'),
      namespacedResource('v1', 'services', 'Service'),
      ROLE_BINDINGS,
      ROLES,
      clusterResource(RBAC, 'clusterroles', 'ClusterRole'),
      clusterResource('security.openshift.io/v1', 'securitycontextconstraints', 'SecurityContextConstraints'),
      namespacedResource('v1', 'serviceaccounts', 'ServiceAccount'),
      CONFIG_MAPS,
      SECRETS,
      LEASES,
    ],
  },
  { title: 'namespaces', kinds: [NAMESPACES], then: 'gone' },
  { title: 'bindings of rights', kinds: [CLUSTER_ROLE_BINDINGS] },
];

/** The kinds of Holdfast's own objects. A lease is removed last: as long as a pool exists, its leases keep addresses from being allocated twice. */
export const OWN_KINDS: readonly Resource[] = [ADDRESS_POOLS, ADDRESS_BLOCKS, ADDRESS_LEASES];

/**
 * A policy that stays with the kinds, so that API servers find the parameters of a new installation. It is removed last: API servers then
 * know that the other parameters are gone, and deny instead of using old ones.
 */
export const KEPT_POLICY = { name: 'holdfast-configmap-informer', kinds: POLICY_KINDS } as const;
