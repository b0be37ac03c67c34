import { expect } from 'chai';
import sinon from 'sinon';
import { claim, launcher, vm, vmi } from '../../../test/objects/workload-objects.js';
import { observationOf } from '../testing/workload-observation.js';
import { plan } from './plan.js';

describe('the annotations of launchers', () => {
  afterEach(() => sinon.restore());

  for (const report of ['', '[{', ' '.repeat(70_000)]) {
    it(`keep the claim of an unplugged interface if a report of ${report.length} characters cannot be read`, () => {
      const pod = launcher([]);
      pod.metadata.annotations!['k8s.v1.cni.cncf.io/network-status'] = report;
      const actions = plan(observationOf({ vm: vm({}), vmi: vmi({}), launchers: [pod], claims: [claim()] }));
      expect(actions.map(({ kind }) => kind)).to.deep.equal(['wait']);
    });
  }

  // tenants write both texts, and the status where no pool serves the network
  it('are compared at once with a claim of 100,000 addresses', () => {
    const pod = launcher([]);
    const attachments = Array.from({ length: 1_500 }, () => ({ name: 'vms/blue', interface: 'o' }));
    pod.metadata.annotations!['k8s.v1.cni.cncf.io/network-status'] = JSON.stringify(attachments);
    const shown = { ...claim(), status: { ips: Array.from({ length: 100_000 }, (_, index) => `x${index}`) } };
    const actions = plan(observationOf({ vm: vm({}), vmi: vmi({}), launchers: [pod], claims: [shown] }));
    expect(actions.map(({ kind }) => kind)).to.deep.equal(['release']);
  }).timeout(1_000);

  it('are parsed once or twice for each pod, however many claims and pods there are', () => {
    const claims = Array.from({ length: 20 }, (_, index) =>
      claim({ name: `vm1.net${index}`, vmNetwork: `net${index}` }),
    );
    const elements = claims.map(({ metadata }) => ({ nad: 'blue', claim: metadata.name }));
    // anybody may create a pod with the label of a launcher and no owner
    const pods = Array.from({ length: 20 }, (_, index) => {
      const pod = launcher(elements.slice(index), { name: `pod${index}` });
      return { ...pod, metadata: { ...pod.metadata, ownerReferences: [] } };
    });
    const annotations = pods.map(({ metadata }) => metadata.annotations?.['k8s.v1.cni.cncf.io/networks']);
    const parse = sinon.spy(JSON, 'parse');
    plan(observationOf({ vm: vm({}, { deleting: true }), claims, launchers: pods }));
    const read = parse.args.map(([text]) => text).filter((text) => annotations.includes(text));
    expect([...new Set(read)].sort()).to.deep.equal(annotations.sort());
    // tests before this one may have filled what is remembered, so that it is forgotten in between
    expect(read.length).to.be.at.most(2 * annotations.length);
  });
});
