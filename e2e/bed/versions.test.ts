import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { kubeVirtVersion } from './versions.js';

describe('The version of KubeVirt on the bed', () => {
  it('is the newest one if no variable names another', () => {
    expect(kubeVirtVersion('')).to.deep.equal({ version: 'v1.8.0' });
  });

  it('has a go.mod and a go.sum of its own if it is an older one', () => {
    const { version, modfile = '' } = kubeVirtVersion('1.7');
    expect(version).to.equal('v1.7.0');
    for (const file of [modfile, modfile.replace(/mod$/, 'sum')]) {
      expect(existsSync(join(import.meta.dirname, 'go', file)), file).to.equal(true);
    }
  });

  it('is refused if the bed cannot run it, with the versions that it can', () => {
    expect(() => kubeVirtVersion('1.5')).to.throw('BED_KUBEVIRT is "1.5", and the test bed runs KubeVirt 1.7, 1.8');
  });
});
