import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { kubernetesVersion, kubeVirtVersion, PAIRS, type VersionPair } from './versions.js';

const SOURCE = join(import.meta.dirname, '..', 'go');

const minors = (program: keyof VersionPair) => [...new Set(PAIRS.map((pair) => pair[program]))];
const VERSIONS = [
  ...minors('kubernetes').map((minor) => ({ module: 'k8s.io/kubernetes', ...kubernetesVersion(minor) })),
  ...minors('kubeVirt').map((minor) => ({ module: 'kubevirt.io/kubevirt', ...kubeVirtVersion(minor) })),
];

describe('The versions on the bed', () => {
  it('are the newest ones if no variable names others', () => {
    expect(kubernetesVersion('')).to.deep.equal({ version: 'v1.37.2', modfile: 'kubernetes-1.37.mod' });
    expect(kubeVirtVersion('')).to.deep.equal({ version: 'v1.8.0', featureGates: ['LiveUpdateNADRef'] });
  });

  for (const { module, version, modfile = 'go.mod' } of VERSIONS) {
    it(`have a module file with its checksums: ${modfile} requires ${module} ${version}`, async () => {
      expect(await readFile(join(SOURCE, modfile), 'utf8')).to.match(
        new RegExp(`^(?:require |\\t)${module} ${version}$`, 'm'),
      );
      expect(existsSync(join(SOURCE, modfile.replace(/mod$/, 'sum')))).to.equal(true);
    });
  }

  it('are compiled by the newest Go that a module file needs, which an older Go reads in go.mod only', async () => {
    const files = await Promise.all(VERSIONS.map(({ modfile = 'go.mod' }) => readFile(join(SOURCE, modfile), 'utf8')));
    const needed = files.map((file) => /^go (.*)$/m.exec(file)?.[1] ?? '').sort(byVersion);
    const wanted = /^toolchain go(.*)$/m.exec(await readFile(join(SOURCE, 'go.mod'), 'utf8'))?.[1];
    expect(wanted).to.equal(needed.at(-1));
  });

  it('are refused if the bed cannot run them, with those that it can', () => {
    expect(() => kubernetesVersion('1.20')).to.throw(
      'BED_KUBERNETES is "1.20", and the test bed runs Kubernetes 1.35, 1.36, 1.37: name one of them',
    );
    expect(() => kubeVirtVersion('1.5')).to.throw(
      'BED_KUBEVIRT is "1.5", and the test bed runs KubeVirt 1.7, 1.8, 1.9',
    );
  });
});

/** @param a like 1.26.0 */
function byVersion(a: string, b: string): number {
  return a.localeCompare(b, undefined, { numeric: true });
}
