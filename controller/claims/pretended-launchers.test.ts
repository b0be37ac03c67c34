import { expect } from 'chai';
import sinon from 'sinon';
import type { Pod } from '../../api/pod.js';
import { transformClaimPod } from '../../ipam/claims/running/claim-pods.js';
import { claim, launcher } from '../../test/objects/workload-objects.js';
import { transformLauncher } from '../caches.js';
import { observeWorkload, readWorkload } from './observe.js';
import { cachesOf } from './testing/workload-observation.js';

/** As any user may create it: with the label of launchers, and no VMI. */
function pretended(name: string, reference?: string): Pod {
  const { ownerReferences: _none, ...metadata } = launcher([{ nad: 'blue', ...(reference && { claim: reference }) }], {
    name,
  }).metadata;
  return { metadata };
}

describe('pods that only look like launchers', () => {
  const parse = sinon.spy(JSON, 'parse');

  beforeEach(() => parse.resetHistory());

  after(() => parse.restore());

  it('are neither parsed nor kept if they refer to no claim', () => {
    const pod = pretended('any');
    pod.metadata.annotations!['k8s.v1.cni.cncf.io/network-status'] = '[]';
    expect(transformLauncher(pod).metadata).to.not.have.property('annotations');
    expect(transformClaimPod(pod).claims).to.deep.equal([]);
    expect(parse.callCount).to.equal(0);
  });

  it('are parsed if the key of their reference is written with escapes', () => {
    const pod = pretended('escaped', 'vm1.data');
    const annotations = pod.metadata.annotations!;
    const key = 'k8s.v1.cni.cncf.io/networks';
    annotations[key] = annotations[key]!.replace('ipam', '\\u0069pam');
    expect(transformClaimPod(pod).claims).to.deep.equal(['vm1.data']);
    expect(transformLauncher(pod).metadata.annotations).to.have.property(key);
  });

  it('are not looked at by the sync of a workload to whose claims they do not refer', () => {
    const others = Array.from({ length: 500 }, (_, n) => pretended(`other-${n}`, 'vm9.data'));
    const listers = cachesOf({ claims: [claim()], launchers: [...others, pretended('mine', 'vm1.data')] });
    parse.resetHistory();
    const settings = { areNetworksKnown: true, maxClaims: 32, restoreWaitMs: 0, now: 0, earliestNow: 0 };
    const { launchers } = observeWorkload('vms/vm1', readWorkload('vms/vm1', listers), listers, {
      ...settings,
      ...{ isGateOpen: true, servesPrimaryNetworks: false },
    });
    expect(launchers.map(({ metadata }) => metadata.name)).to.deep.equal(['mine']);
    expect(parse.callCount).to.be.at.most(1);
  });
});
