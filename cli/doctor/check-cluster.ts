import { docsUrl } from '../../process/docs-url.js';
import { groupBy } from '../group-by.js';
import {
  type Crd,
  type JsonSchema,
  type InstalledWorkload,
  allocatesAddresses,
  isReady,
  pluginFolderOf,
} from '../installation.js';
import { type Finding, errorOf, warningOf } from './finding.js';
import type { ObservedCluster } from './observe.js';
import { CLAIM_CRD, CRD_FIELDS } from './crd-fields.js';

/** `--max-staleness`: the clocks of nodes may differ by this time. */
const MAX_SKEW_MS = 30_000;
/** The kubelet renews its Lease every 10 s. */
const RENEWAL_MS = 15_000;
/** Where runtimes and installers keep CNI plugins. */
const CNI_FOLDER = /\/(cni\/bin|cni-bin|cni)\/?$/;

/** Rights that the processes lack. */
export function checkRights({ missingRights = [] }: ObservedCluster): Finding[] {
  return [...groupBy(missingRights, ({ account }) => account)].map(([account, rights]) => {
    const texts = rights.map(({ verb, group, resource }) => `${verb} ${resource}${group === '' ? '' : ` of ${group}`}`);
    return errorOf('rights', account, `may not ${texts.join(', ')}`, 'apply manifests/base/*/rbac');
  });
}

/** An agent that installs the CNI plugin into another folder than the runtime reads, as the DaemonSet of Multus shows. */
export function checkCniFolder({ workloads = [], multus = [] }: ObservedCluster): Finding[] {
  const others = [...new Set(multus.flatMap(pluginFoldersOf))];
  return workloads.flatMap((workload) => {
    const { namespace = '', name } = workload.metadata;
    const own = pluginFolderOf(workload);
    if (own === undefined || others.length === 0 || others.some((path) => normal(path) === normal(own))) return [];
    const problem = `installs the CNI plugin into ${own}, but Multus uses ${others.join(', ')}`;
    const remedy = `set the folder that the container runtime uses: ${docsUrl('how-to/install.md#adapt-the-nodes')}`;
    return [warningOf('cni-folder', `DaemonSet ${namespace}/${name}`, problem, remedy)];
  });
}

/** Returns the folders of CNI plugins that the pods of a workload mount. */
export function pluginFoldersOf({ spec }: InstalledWorkload): string[] {
  const paths = (spec?.template?.spec?.volumes ?? []).flatMap(({ hostPath }) => hostPath?.path ?? []);
  return paths.filter((path) => CNI_FOLDER.test(path) && !path.includes('/net.d'));
}

function normal(path: string): string {
  return path.replace(/\/+$/, '');
}

/** Nodes whose clock differs from that of the API server, by the Leases that their kubelets renew. */
export function checkClocks({ now, nodeLeases, nodes }: ObservedCluster): Finding[] {
  if (now === undefined) return [];
  const ready = new Set((nodes ?? []).filter(isReady).map(({ metadata }) => metadata.name));
  return (nodeLeases ?? []).flatMap(({ metadata: { name }, spec }) => {
    const age = now - Date.parse(spec?.renewTime ?? '');
    // the Lease of a node that is not ready is old because the kubelet does not renew it
    const isBehind = age > MAX_SKEW_MS + RENEWAL_MS && ready.has(name);
    if (!isBehind && !(age < -MAX_SKEW_MS)) return [];
    const seconds = Math.round(Math.abs(age) / 1000);
    const problem = `its clock is about ${seconds} s ${isBehind ? 'behind' : 'ahead of'} that of the API server; 30 s are allowed`;
    return [errorOf('clocks', `Node ${name}`, problem, 'synchronize the clock of the node with NTP or chrony')];
  });
}

const APPLY = 'apply manifests/crds of the version of the processes';

/** Kinds that are missing, not served, or older than the processes. */
export function checkKinds(observed: ObservedCluster): Finding[] {
  const { crds } = observed;
  if (crds === undefined) return [];
  const own = allocatesAddresses(observed) ? Object.keys(CRD_FIELDS) : [];
  return [...own, CLAIM_CRD].flatMap((name) => {
    const crd = crds.find(({ metadata }) => metadata.name === name);
    return crd === undefined
      ? [errorOf('kinds', `CustomResourceDefinition ${name}`, 'does not exist', APPLY)]
      : checkKind(crd);
  });
}

function checkKind(crd: Crd): Finding[] {
  const object = `CustomResourceDefinition ${crd.metadata.name}`;
  const established = crd.status?.conditions?.find(({ type }) => type === 'Established');
  if (established?.status === 'False')
    return [errorOf('kinds', object, `is not served: ${established.message ?? ''}`, APPLY)];
  const served = crd.spec?.versions?.find((version) => version.served === true)?.schema?.openAPIV3Schema;
  const missing = crdFieldsOf(crd.metadata.name).filter((path) => !hasField(served, path.split('.')));
  if (missing.length === 0) return [];
  const problem = `is older than this version of kubectl holdfast: it has no ${missing.join(', ')}`;
  return [errorOf('kinds', object, `${problem}, so the API server drops these fields`, APPLY)];
}

/** Returns the paths of the fields of a kind, such as `spec.owner.uid`. */
export function crdFieldsOf(crd: string): string[] {
  const objects = Object.entries(CRD_FIELDS[crd] ?? {});
  return objects.flatMap(([path, names]) => names.split(' ').map((name) => `${path}.${name}`));
}

function hasField(schema: JsonSchema | undefined, [name = '', ...rest]: readonly string[]): boolean {
  const field = schema?.properties?.[name];
  if (field === undefined) return false;
  return rest.length === 0 || hasField(field.items ?? field, rest);
}
