import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { SUPPORTED_VERSIONS } from '../cni/agent/stdin-config.js';
import { ROOT } from './source-files.js';

const read = (path: string) => readFile(join(ROOT, path), 'utf8');

describe('The documented versions', () => {
  const modules: Readonly<Record<string, string>> = {
    Kubernetes: 'k8s.io/kubernetes',
    KubeVirt: 'kubevirt.io/kubevirt',
    Multus: 'gopkg.in/k8snetworkplumbingwg/multus-cni.v4',
  };

  for (const [program, path] of Object.entries(modules)) {
    it(`include that of ${program} on the test bed, as tested on each change`, async () => {
      const [page, goMod] = await Promise.all(['docs/reference/versions.md', 'e2e/bed/go/go.mod'].map(read));
      const [, onBed] = new RegExp(`^\\t${path} v(\\d+\\.\\d+)\\.`, 'm').exec(goMod ?? '') ?? [];
      const [, tested = ''] = new RegExp(`^\\| ${program} \\|[^|]*\\|([^|]*)\\|$`, 'm').exec(page ?? '') ?? [];
      expect(tested.match(/\d+\.\d+/g)).to.include(onBed);
    });
  }

  it('of the CNI specification are those of the agent', async () => {
    const page = await read('docs/reference/version-skew.md');
    const [, listed = ''] = /speaks the versions (.*) of the CNI specification/.exec(page) ?? [];
    expect(listed.match(/\d+\.\d+\.\d+/g)).to.deep.equal([...SUPPORTED_VERSIONS]);
  });
});
