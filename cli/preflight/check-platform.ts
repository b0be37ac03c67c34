import type { KubeVirt } from '../../api/kubevirt.js';
import { objectKey } from '../../api/meta.js';
import { docsUrl } from '../../process/docs-url.js';
import { oldestKubeVirt } from '../doctor/check-admission.js';
import { pluginFoldersOf } from '../doctor/check-cluster.js';
import { type CheckReport, checkReads, reportCheck } from '../doctor/check-report.js';
import { type Finding, errorOf, warningOf } from '../doctor/finding.js';
import type { InstalledWorkload } from '../installation.js';
import { valueOf } from '../reader.js';
import type { ObservedTarget } from './observe.js';
import { REQUIREMENTS, isOlder } from './requirements.js';

const VERSIONS = docsUrl('reference/versions.md#what-holdfast-runs-with');

export function checkKubernetes({ version }: ObservedTarget): CheckReport {
  return checkReads('kubernetes', [version], () => {
    const found = valueOf(version, '');
    const problem = `Kubernetes is ${found}; Holdfast needs ${REQUIREMENTS.kubernetes} or newer`;
    const findings = isOlder(found, REQUIREMENTS.kubernetes)
      ? [errorOf('kubernetes', 'API server', problem, `upgrade Kubernetes: ${VERSIONS}`)]
      : [];
    return { message: `Kubernetes ${found}`, findings };
  });
}

export function checkKubeVirt({ kubevirts }: ObservedTarget): CheckReport {
  return checkReads('kubevirt', [kubevirts], () => {
    const found = oldestKubeVirt(valueOf(kubevirts, []));
    if (found !== undefined) return checkInstalledKubeVirt(found);
    const problem = kubevirts.kind === 'found' ? 'the cluster has no KubeVirt object' : 'KubeVirt is not installed';
    return { message: '', findings: [errorOf('kubevirt', 'KubeVirt', problem, 'install KubeVirt first')] };
  });
}

function checkInstalledKubeVirt(found: KubeVirt): Omit<CheckReport, 'check' | 'state'> {
  const { namespace = '' } = found.metadata;
  const { phase = 'unknown', observedKubeVirtVersion: version = 'unknown' } = found.status ?? {};
  const { kubeVirt, kubeVirtNamespace } = REQUIREMENTS;
  const findings: Finding[] = [];
  const warn = (problem: string, remedy: string) =>
    findings.push(warningOf('kubevirt', `KubeVirt ${objectKey(found)}`, problem, remedy));
  if (isOlder(version, kubeVirt))
    warn(`is ${version}; the oldest that is tested is ${kubeVirt}`, `upgrade: ${VERSIONS}`);
  if (phase !== 'Deployed') warn(`its phase is ${phase}`, 'wait until it is Deployed');
  const guide = docsUrl('how-to/install.md#apply-the-manifests');
  if (namespace !== kubeVirtNamespace)
    warn(`its namespace is not ${kubeVirtNamespace}`, `set kubevirtNamespace to ${namespace}: ${guide}`);
  return { message: `KubeVirt ${version} in namespace ${namespace}, with ${describeGates(found)}`, findings };
}

function describeGates({ spec }: KubeVirt): string {
  const gates = spec?.configuration?.developerConfiguration?.featureGates ?? [];
  return gates.length === 0 ? 'no feature gates' : `feature gates ${gates.join(', ')}`;
}

export function checkMultus({ nads, daemonSets }: ObservedTarget): CheckReport {
  if (nads.kind === 'unserved') {
    const problem = `${nads.why}: Multus is not installed`;
    return reportCheck('multus', '', [errorOf('multus', 'Multus', problem, 'install Multus first')]);
  }
  return checkReads('multus', [daemonSets], () => {
    const sets = multusOf(daemonSets);
    if (sets.length === 0) {
      const problem = 'the kind of NADs is served, but no DaemonSet has multus in its name';
      const remedy = 'check that Multus runs on each node: some distributions start it in another way';
      return { message: '', findings: [warningOf('multus', 'Multus', problem, remedy)] };
    }
    const findings = sets.flatMap((set) => {
      const version = versionOf(set);
      if (!isOlder(version, REQUIREMENTS.multus)) return [];
      const problem = `is ${version}; Holdfast needs ${REQUIREMENTS.multus} or newer`;
      return [errorOf('multus', `DaemonSet ${objectKey(set)}`, problem, `upgrade Multus: ${VERSIONS}`)];
    });
    const texts = sets.map(
      (set) => `DaemonSet ${objectKey(set)}, ${isThick(set) ? 'thick' : 'thin'} ${versionOf(set)}`,
    );
    return { message: texts.join('; '), findings };
  });
}

export function checkPluginFolder({ daemonSets }: ObservedTarget): CheckReport {
  return checkReads('cni-folder', [daemonSets], () => {
    const folders = [...new Set(multusOf(daemonSets).flatMap(pluginFoldersOf))].map((path) => path.replace(/\/+$/, ''));
    const { pluginFolder } = REQUIREMENTS;
    const guide = docsUrl('how-to/install.md#adapt-the-nodes');
    const text = folders.join(', ');
    if (folders.includes(pluginFolder)) return { message: `Multus uses ${text}`, findings: [] };
    const [problem, remedy] =
      folders.length === 0
        ? [
            'no DaemonSet of Multus shows the folder of CNI plugins',
            `ask the runtime on a node, and set agent.cniBinDir unless it is ${pluginFolder}`,
          ]
        : [
            `Multus uses ${text}; Holdfast installs its plugin into ${pluginFolder} unless you set another folder`,
            `set agent.cniBinDir to ${text}`,
          ];
    return { message: '', findings: [warningOf('cni-folder', 'nodes', problem, `${remedy}: ${guide}`)] };
  });
}

function multusOf(daemonSets: ObservedTarget['daemonSets']): InstalledWorkload[] {
  return valueOf(daemonSets, []).filter(({ metadata }) => metadata.name.includes('multus'));
}

function imagesOf({ spec }: InstalledWorkload): string[] {
  return (spec?.template?.spec?.containers ?? []).flatMap(({ image }) => image ?? []);
}

/** Of the image's tag: `snapshot-thick` is none. */
function versionOf(set: InstalledWorkload): string {
  const tags = imagesOf(set).flatMap((image) => /:(v?\d+\.\d+[\w.-]*)(?:@.*)?$/.exec(image)?.[1] ?? []);
  return tags[0] ?? 'of unknown version';
}

/** The daemon of Multus mounts its socket folder into the host, and its pods run `multus-daemon`. */
function isThick(set: InstalledWorkload): boolean {
  const { containers = [] } = set.spec?.template?.spec ?? {};
  const isDaemon = containers.some(({ command = [], args = [] }) =>
    [...command, ...args].join(' ').includes('multus-daemon'),
  );
  return isDaemon || imagesOf(set).some((image) => image.includes('thick'));
}
