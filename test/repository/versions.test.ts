import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { REQUIREMENTS } from '../../cli/preflight/requirements.js';
import { SUPPORTED_VERSIONS } from '../../api/networks/cni-version.js';
import { PAIRS, type VersionPair } from '../../bed/build/versions.js';
import { ROOT } from '../source-files.js';

const read = (path: string) => readFile(join(ROOT, path), 'utf8');

describe('The documented versions', () => {
  const minors = (program: keyof VersionPair) => [...new Set(PAIRS.map((pair) => pair[program]))];
  const onBed: Readonly<Record<string, () => Promise<readonly string[]>>> = {
    Kubernetes: () => Promise.resolve(minors('kubernetes')),
    KubeVirt: () => Promise.resolve(minors('kubeVirt')),
    Multus: async () => {
      const [, minor = ''] = /multus-cni\.v4 v(\d+\.\d+)\./.exec(await read('bed/go/go.mod')) ?? [];
      return [minor];
    },
  };

  for (const [program, versionsOf] of Object.entries(onBed)) {
    it(`include those of ${program} on the test bed`, async () => {
      const page = await read('docs/reference/versions.md');
      const [, tested = ''] = new RegExp(`^\\| ${program} \\|[^|]*\\|([^|]*)\\|$`, 'm').exec(page) ?? [];
      expect(tested.match(/\d+\.\d+/g)).to.include.members([...(await versionsOf())]);
    });
  }

  it('of a run with all pairs are those that the test bed has', async () => {
    const page = await read('docs/compatibility.md');
    const rows = [...page.matchAll(/^\| KubeVirt (\d+\.\d+)\.\d+ on Kubernetes (\d+\.\d+)\.\d+ \|/gm)];
    const ran = rows.map(([, kubeVirt, kubernetes]) => ({ kubernetes, kubeVirt }));
    expect(ran).to.deep.equal(PAIRS);
  });

  it('are those that `kubectl holdfast preflight` requires', async () => {
    const page = await read('docs/reference/versions.md');
    const needed = (program: string) => new RegExp(`^\\| ${program} \\| (\\d[\\d.]*)`, 'm').exec(page)?.[1];
    expect(needed('Kubernetes')).to.equal(REQUIREMENTS.kubernetes);
    expect(needed('Multus')).to.equal(REQUIREMENTS.multus);
    expect(await read('manifests/chart/Chart.yaml')).to.include(`kubeVersion: '>=${REQUIREMENTS.kubernetes}.0-0'`);
    expect(minors('kubeVirt').sort()[0]).to.equal(REQUIREMENTS.kubeVirt);
    const daemonSet = await read('manifests/base/ipam/agent/daemonset.yaml');
    expect(daemonSet).to.include(`path: ${REQUIREMENTS.pluginFolder}\n`);
    for (const port of REQUIREMENTS.apiServerPorts)
      expect(await read('manifests/base/pods/kustomization.yaml')).to.match(new RegExp(`port: ${port}\\b`));
  });

  it('of the CNI specification are those of the agent', async () => {
    const page = await read('docs/reference/version-skew.md');
    const [, listed = ''] = /speaks the versions (.*) of the CNI specification/.exec(page) ?? [];
    expect(listed.match(/\d+\.\d+\.\d+/g)).to.deep.equal([...SUPPORTED_VERSIONS]);
  });
});
