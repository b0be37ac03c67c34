import { expect } from 'chai';
import { type IPAMClaim, isWorkloadClaim, claimMacOf, claimOwnerOf } from '../../api/ipam-claim.js';
import {
  CLAIM_MAC,
  CLAIM_NAD,
  CLAIM_REQUESTED_ADDRESSES,
  CLAIM_REQUEST_ORIGIN,
  LAST_APPLIED_ANNOTATION,
} from '../../api/names.js';
import { workloadOfClaim } from '../../cluster/watch-specs.js';
import { claim } from '../../test/objects/workload-objects.js';
import { transformServedClaim } from './claim-transform.js';

const MAC = '02:00:00:00:00:01';

describe('a claim as the IPAM caches it', () => {
  const whole: IPAMClaim = {
    ...claim({ vmNetwork: 'data' }),
    status: {
      ips: [],
      ownerPod: { name: 'p1' },
      conditions: [
        { type: 'Theirs', status: 'True', reason: 'x', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
      ],
    },
  };
  const { metadata } = whole;
  const big = {
    ...whole,
    metadata: {
      ...metadata,
      generation: 2,
      creationTimestamp: '2026-01-01T00:00:00Z',
      managedFields: [{}],
      labels: { ...metadata.labels, other: 'x' },
      annotations: {
        ...metadata.annotations,
        [CLAIM_MAC]: MAC,
        [CLAIM_REQUEST_ORIGIN]: 'template',
        'kubectl.kubernetes.io/last-applied-configuration': '{}',
      },
      finalizers: [...(metadata.finalizers ?? []), 'example.com/other'],
      ownerReferences: [
        ...(metadata.ownerReferences ?? []),
        { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'c' },
      ],
    },
  };

  it('has its whole status, because conditions of other writers are written back with ours', () => {
    expect(transformServedClaim(big).status).to.deep.equal(whole.status);
  });

  describe('that kubectl apply has restored', () => {
    const copyOf = (uid: string) =>
      JSON.stringify({ metadata: { uid, annotations: metadata.annotations }, status: { ips: ['10.0.0.3/24'] } });
    const requestOf = (copy: string, annotations = {}) => {
      const applied = { ...metadata.annotations, [LAST_APPLIED_ANNOTATION]: copy, ...annotations };
      const small = transformServedClaim({ ...whole, metadata: { ...metadata, annotations: applied } }).metadata;
      return [small.annotations?.[CLAIM_REQUESTED_ADDRESSES], small.annotations?.[CLAIM_REQUEST_ORIGIN]];
    };

    it('requests the addresses of the copy, also before the controller has written that', () => {
      expect(requestOf(copyOf('former'))).to.deep.equal(['["10.0.0.3/24"]', 'former']);
    });

    it('requests what it says itself, and nothing of a copy of its own', () => {
      const own = { [CLAIM_REQUESTED_ADDRESSES]: '["10.0.0.4/24"]' };
      expect(requestOf(copyOf('former'), own)).to.deep.equal(['["10.0.0.4/24"]', undefined]);
      expect(requestOf(copyOf(metadata.uid ?? ''))).to.deep.equal([undefined, undefined]);
    });
  });

  it('has no status if there is none, which differs from a status without addresses', () => {
    const { status: _status, ...rest } = whole;
    expect(transformServedClaim(rest)).to.not.have.property('status');
  });

  it('has all fields that its addresses depend on, and its owner only once', () => {
    const small = transformServedClaim(big);
    expect(small.metadata).to.have.all.keys(
      ...['name', 'namespace', 'uid', 'resourceVersion', 'creationTimestamp', 'generation'],
      ...['annotations', 'ownerReferences'],
    );
    expect(small.metadata.ownerReferences?.map(({ kind }) => kind)).to.deep.equal(['VirtualMachine']);
    expect(Object.keys(small.metadata.annotations ?? {})).to.have.members([CLAIM_NAD, CLAIM_MAC, CLAIM_REQUEST_ORIGIN]);
    expect(claimMacOf(small)).to.equal(MAC);
  });

  it('has the same workload as before, whether owned, recorded in annotations or known by its label alone', () => {
    const { ownerReferences: _owner, ...orphaned } = big.metadata;
    const { annotations: _annotations, ...labelled } = orphaned;
    for (const each of [big, { ...big, metadata: orphaned }, { ...big, metadata: labelled }]) {
      expect(workloadOfClaim(transformServedClaim(each))).to.deep.equal(['vms/vm1']);
      expect(claimOwnerOf(transformServedClaim(each))).to.deep.equal(claimOwnerOf(each));
      expect(isWorkloadClaim(transformServedClaim(each))).to.equal(isWorkloadClaim(each));
    }
  });
});
