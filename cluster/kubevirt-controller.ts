import type { KubeVirt } from '../api/kubevirt.js';
import { type KubeObject, byAge, joinKey } from '../api/meta.js';
import {
  DEFAULT_NETWORK_ANNOTATION,
  LAUNCHER_CREATOR,
  NETWORKS_ANNOTATION,
  POLICIES_CONFIG_MAP,
} from '../api/names.js';
import { type Pod, controllingVmi } from '../api/pod.js';
import { CONFIG_MAPS } from '../kube/resources.js';
import type { InformerRegistry, WatchSpec } from '../kube/informers/informers.js';
import { KUBEVIRT_WATCH } from './watch-specs.js';

/** The user who creates launchers, or why that user is unknown. Then no pod gets a claim's address. */
export type KubeVirtController =
  | { readonly username: string; readonly problem?: undefined }
  | { readonly username?: undefined; readonly problem: string };

/** The parameters of the admission policies. */
export interface PoliciesConfigMap extends KubeObject {
  data?: Record<string, string>;
}

/** Returns the user of KubeVirt's controller. Known only if the administrator's parameter and the KubeVirt object agree. */
export interface KubeVirtControllerSource {
  controller(): KubeVirtController;
}

/** Returns the oldest KubeVirt object. KubeVirt allows one, and tenants could create others only after its installation. */
export function installedKubeVirt(kubevirts: readonly KubeVirt[]): KubeVirt | undefined {
  return [...kubevirts].sort(byAge)[0];
}

/** @param key `namespace/name` of the ConfigMap, for messages */
export function findKubeVirtController(
  kubevirts: readonly KubeVirt[],
  policies: PoliciesConfigMap | undefined,
  key: string,
): KubeVirtController {
  const actual = installedKubeVirt(kubevirts)?.metadata.namespace;
  const configured = policies?.data?.kubevirtNamespace ?? '';
  if (actual !== undefined && configured === actual) {
    return { username: `system:serviceaccount:${actual}:kubevirt-controller` };
  }
  const parameter = `kubevirtNamespace in the ConfigMap ${key}`;
  const stated = configured === '' ? 'is empty' : `is ${JSON.stringify(configured.slice(0, MAX_NAMESPACE_LENGTH))}`;
  const state = policies === undefined ? `the ConfigMap ${key} is missing` : `${parameter} ${stated}`;
  if (actual === undefined) {
    return { problem: `${state}, and there is no KubeVirt object: create the KubeVirt object, or install KubeVirt` };
  }
  const remedy =
    policies === undefined ? `create the ConfigMap with kubevirtNamespace ${actual}` : `set it to ${actual}`;
  return { problem: `${state}, and the KubeVirt object is in namespace ${actual}: ${remedy}` };
}

/** Maximum length of a namespace's name. */
const MAX_NAMESPACE_LENGTH = 63;

/**
 * Returns why a pod that a VMI controls gets no address of a claim, as the end of a sentence; undefined if KubeVirt created it. Older pods, and
 * pods that KubeVirt's controller created while the policies knew it, have no annotation.
 */
export function describeUntrustedCreator(
  { metadata }: Pick<Pod, 'metadata'>,
  { username, problem }: KubeVirtController,
): string | undefined {
  if (problem !== undefined) return problem;
  const creator = creatorOf({ metadata });
  return creator === undefined || creator === username
    ? undefined
    : `it was created by ${creator}, but only KubeVirt (${username}) may create launchers: delete the pod`;
}

/** Returns the creator in the annotation; undefined if there is none. */
export function creatorOf({ metadata }: Pick<Pod, 'metadata'>): string | undefined {
  return metadata.annotations?.[LAUNCHER_CREATOR] || undefined;
}

/** True if the launcher has networks. The user who sets them counts as its creator, so without networks the creator is not checked. */
export function hasNetworks({ metadata }: Pick<Pod, 'metadata'>): boolean {
  const { annotations = {} } = metadata;
  return NETWORKS_ANNOTATION in annotations || DEFAULT_NETWORK_ANNOTATION in annotations;
}

/** Returns the VMI of a launcher that may have the addresses of its claims; undefined if another user created the pod or it has no networks. */
export function vmiOfTrustedLauncher(
  pod: Pod,
  controller: KubeVirtController,
): { name: string; uid: string } | undefined {
  return hasNetworks(pod) && describeUntrustedCreator(pod, controller) === undefined ? controllingVmi(pod) : undefined;
}

const watchSpecs = new Map<string, WatchSpec<PoliciesConfigMap>>();

/** Returns one constant per namespace, because it identifies the cache. */
function policiesWatchIn(namespace: string): WatchSpec<PoliciesConfigMap> {
  const watched = watchSpecs.get(namespace) ?? {
    resource: CONFIG_MAPS,
    namespace,
    fieldSelector: `metadata.name=${POLICIES_CONFIG_MAP}`,
    transform: transformPolicies,
  };
  watchSpecs.set(namespace, watched);
  return watched;
}

function transformPolicies({ metadata, data }: PoliciesConfigMap): PoliciesConfigMap {
  const { name, namespace = '' } = metadata;
  return { metadata: { name, namespace }, data: { kubevirtNamespace: data?.kubevirtNamespace ?? '' } };
}

/**
 * Watches the KubeVirt objects and the policies' ConfigMap.
 * @param namespace Holdfast's own namespace
 * @param changed called when the controller, or the reason why it is unknown, changes
 */
export function watchKubeVirt(
  informers: Pick<InformerRegistry, 'get'>,
  namespace: string,
  changed?: () => void,
): KubeVirtControllerSource {
  const kubevirts = informers.get(KUBEVIRT_WATCH);
  const policies = informers.get(policiesWatchIn(namespace));
  const key = joinKey(namespace, POLICIES_CONFIG_MAP);
  const controller = () => findKubeVirtController(kubevirts.cache.list(), policies.cache.get(key), key);
  if (changed !== undefined) {
    const state = () => JSON.stringify(controller());
    let before = state();
    const look = () => {
      const now = state();
      if (now === before) return;
      before = now;
      changed();
    };
    kubevirts.onChange(look);
    policies.onChange(look);
  }
  return { controller };
}
