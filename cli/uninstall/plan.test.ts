import { expect } from 'chai';
import type { ObjectMeta } from '../../api/meta.js';
import { DAEMON_SETS } from '../installation.js';
import { EVERYTHING } from '../testing/installed-objects.js';
import { type ObservedData, type ObservedInstallation, isNothingLeft, findRefusals, removalCommands } from './plan.js';

const NOTHING: ObservedData = {
  claims: 0,
  otherClaims: 0,
  pools: 0,
  blocks: 0,
  leases: 0,
  users: [],
  nads: [],
  nodes: [],
  crds: [],
  keptPolicy: [],
};

const FLAGS = { clusterFlags: ' --context lab', helmClusterFlags: ' --kube-context lab' };

function observed(data: Partial<ObservedData>): ObservedInstallation {
  return { installed: [], sharedNamespaces: [], pluginFolder: undefined, data: { ...NOTHING, ...data } };
}

function commandsFor(metadata: Partial<ObjectMeta>): string[] {
  const agents = { name: 'holdfast-agent', namespace: 'holdfast-agents', ...metadata };
  return removalCommands([{ resource: DAEMON_SETS, metadata: agents }], FLAGS);
}

describe('the plan of an uninstallation', () => {
  for (const [tool, metadata, remedy] of [
    [
      'Helm',
      { annotations: { 'meta.helm.sh/release-name': 'hf', 'meta.helm.sh/release-namespace': 'net' } },
      'helm uninstall hf -n net --kube-context lab',
    ],
    [
      'Flux',
      { labels: { 'kustomize.toolkit.fluxcd.io/name': 'hf', 'kustomize.toolkit.fluxcd.io/namespace': 'ops' } },
      'flux delete kustomization hf -n ops --context lab',
    ],
    [
      'Flux',
      { labels: { 'helm.toolkit.fluxcd.io/name': 'hf' }, annotations: { 'meta.helm.sh/release-name': 'hf' } },
      'flux delete helmrelease hf -n flux-system --context lab',
    ],
    [
      'Argo CD',
      { annotations: { 'argocd.argoproj.io/tracking-id': 'hf:apps/DaemonSet:holdfast-agents/holdfast-agent' } },
      'argocd app delete hf',
    ],
    ['Argo CD', { labels: { 'argocd.argoproj.io/instance': 'hf' } }, 'argocd app delete hf'],
    ['OLM', { labels: { 'olm.owner': 'holdfast.v1' } }, 'ClusterServiceVersion holdfast.v1'],
    ['kubectl', { annotations: { note: 'ours' } }, 'kubectl delete -k <your overlay> --context lab'],
  ] as const) {
    it(`removes what ${tool} manages with that tool: ${remedy}`, () => {
      const [command, ...others] = commandsFor(metadata);
      expect(command).to.include(remedy);
      expect(others).to.deep.equal([]);
    });
  }

  it('shortens a long list of pods', () => {
    const users = Array.from({ length: 7 }, (_, index) => ({ pod: `a/p${index}` }));
    const [refusal] = findRefusals(observed({ users }), EVERYTHING, FLAGS);
    expect(refusal).to.include('(7): a/p0, a/p1, a/p2, a/p3, a/p4 and 2 more');
  });

  for (const [title, data, isEmpty] of [
    ['nothing at all', {}, true],
    ['claims of other software', { otherClaims: 3, nads: ['a/b'] }, true],
    ['a kind without objects', { crds: ['addresspools.ipam.holdfast.dev'] }, false],
    ['resources on a node', { nodes: ['node-1'] }, false],
    ['a claim', { claims: 1 }, false],
  ] as const) {
    it(`is ${isEmpty ? '' : 'not '}empty with ${title} left`, () => {
      expect(isNothingLeft(observed(data))).to.equal(isEmpty);
    });
  }
});
