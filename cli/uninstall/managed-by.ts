import type { KubeObject } from '../../api/meta.js';

/**
 * Returns how to remove an object with the tool that manages it according to the labels and annotations that the tool sets. If somebody else
 * deletes the object, the tool restores it, or keeps a record of it.
 */
export function removalByManager({ metadata }: Pick<KubeObject, 'metadata'>): string | undefined {
  const { labels = {}, annotations = {} } = metadata;
  // Flux and Argo CD come before Helm, because they render charts
  const release = labels['helm.toolkit.fluxcd.io/name'];
  if (release !== undefined) {
    return removalByFlux('helmrelease', release, labels['helm.toolkit.fluxcd.io/namespace']);
  }
  const kustomization = labels['kustomize.toolkit.fluxcd.io/name'];
  if (kustomization !== undefined) {
    return removalByFlux('kustomization', kustomization, labels['kustomize.toolkit.fluxcd.io/namespace']);
  }
  // <application>:<group>/<kind>:<namespace>/<name>
  const application =
    annotations['argocd.argoproj.io/tracking-id']?.split(':')[0] ?? labels['argocd.argoproj.io/instance'];
  if (application !== undefined) {
    const name = nameIn(application);
    return `delete the Application ${name}: argocd app delete ${name}`;
  }
  const owner = labels['olm.owner'];
  if (owner !== undefined) {
    return `delete the Subscription, then the ClusterServiceVersion ${nameIn(owner)}`;
  }
  const chart = annotations['meta.helm.sh/release-name'];
  if (chart === undefined) return undefined;
  const namespace = annotations['meta.helm.sh/release-namespace'];
  const option = namespace === undefined ? '' : ` -n ${nameIn(namespace)}`;
  return `helm uninstall ${nameIn(chart)}${option}`;
}

function removalByFlux(kind: string, name: string, namespace = 'flux-system'): string {
  return `flux delete ${kind} ${nameIn(name)} -n ${nameIn(namespace)}`;
}

/** A name for a command that somebody copies into a shell. */
function nameIn(text: string): string {
  return /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(text) ? text : '<name>';
}
