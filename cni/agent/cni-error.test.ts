import { expect } from 'chai';
import { CniCode, CniError } from './cni-error.js';

describe('a CNI error', () => {
  it('has a message of bounded length, because runtimes and kubelets keep it', () => {
    const { message } = new CniError(CniCode.Refused, `claim for network "${'x'.repeat(1_000_000)}"`);
    expect(message.length).to.be.below(5_000);
    expect(message).to.match(/^claim for network "x/);
  });
});
