import type { KubeObject } from '../../api/meta.js';

/** A tool that would restore or miss objects which somebody else deletes. */
export interface Manager {
  readonly tool: string;
  /** How to uninstall with the tool. */
  readonly remedy: string;
}

/** Returns the tool that manages an object according to the labels and annotations that the tool sets. */
export function managerOf({ metadata }: Pick<KubeObject, 'metadata'>): Manager | undefined {
  const { labels = {}, annotations = {} } = metadata;
  // Flux and Argo CD come before Helm, because they render charts
  const release = labels['helm.toolkit.fluxcd.io/name'];
  if (release !== undefined) {
    return fluxManager('helmrelease', release, labels['helm.toolkit.fluxcd.io/namespace']);
  }
  const kustomization = labels['kustomize.toolkit.fluxcd.io/name'];
  if (kustomization !== undefined) {
    return fluxManager('kustomization', kustomization, labels['kustomize.toolkit.fluxcd.io/namespace']);
  }
  // <application>:<group>/<kind>:<namespace>/<name>
  const application =
    annotations['argocd.argoproj.io/tracking-id']?.split(':')[0] ?? labels['argocd.argoproj.io/instance'];
  if (application !== undefined) {
    const name = nameIn(application);
    return { tool: 'Argo CD', remedy: `delete the Application ${name}: argocd app delete ${name}` };
  }
  const owner = labels['olm.owner'];
  if (owner !== undefined) {
    return { tool: 'OLM', remedy: `delete the Subscription, then the ClusterServiceVersion ${nameIn(owner)}` };
  }
  const chart = annotations['meta.helm.sh/release-name'];
  if (chart === undefined) return undefined;
  const namespace = annotations['meta.helm.sh/release-namespace'];
  const option = namespace === undefined ? '' : ` -n ${nameIn(namespace)}`;
  return { tool: 'Helm', remedy: `helm uninstall ${nameIn(chart)}${option}` };
}

function fluxManager(kind: string, name: string, namespace = 'flux-system'): Manager {
  return { tool: 'Flux', remedy: `flux delete ${kind} ${nameIn(name)} -n ${nameIn(namespace)}` };
}

/** A name for a command that somebody copies into a shell. */
function nameIn(text: string): string {
  return /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(text) ? text : '<name>';
}
