import { expect } from 'chai';
import type { Pod } from '../../../api/pod.js';
import { Cache } from '../../../kube/informers/cache.js';
import { LAUNCHER_INDEXES } from '../../caches.js';
import { NAMESPACE, vm, vmi } from '../../../test/objects/workload-objects.js';
import { BLUE, cachesOf, observationOf } from '../testing/workload-observation.js';
import { observeWorkload } from '../observe.js';
import { plan } from './plan.js';

const COUNT = 500;

/** The secondary networks of a spec, and how often each is read on average. */
function countedNetworks() {
  let reads = 0;
  const networks = Array.from({ length: COUNT }, (_, index) => ({
    name: `n${index}`,
    multus: {
      get networkName() {
        reads += 1;
        return 'blue';
      },
    },
  }));
  return { networks, readsPerNetwork: () => reads / COUNT };
}

describe('the spec of an owner', () => {
  it('is derived once for an observation and never again by the plan, however many networks and claims there are', () => {
    const [template, running] = [countedNetworks(), countedNetworks()];
    const workload = {
      vm: { ...vm({}), spec: { template: { spec: template } } },
      vmi: { ...vmi({}), spec: running },
      launchers: new Cache<Pod>(LAUNCHER_INDEXES),
    };
    const limits = {
      isGateOpen: true,
      areNetworksKnown: true,
      servesPrimaryNetworks: false,
      maxClaims: COUNT,
      restoreWaitMs: 0,
      ...{ now: 0, earliestNow: 0 },
    };
    const observe = (caches = cachesOf({ nads: [BLUE] })) =>
      observeWorkload(`${NAMESPACE}/vm1`, workload, caches, limits);
    const created = plan(observe()).flatMap((action) => (action.kind === 'create' ? [action.claim] : []));
    expect(created).to.have.length(COUNT);
    expect([template.readsPerNetwork(), running.readsPerNetwork()]).to.deep.equal([1, 1]);

    const unplugged = observe(cachesOf({ nads: [], claims: created }));
    plan(unplugged);
    expect([template.readsPerNetwork(), running.readsPerNetwork()]).to.deep.equal([2, 2]);
  });

  it('is all that a plan sees of a VM and a VMI', () => {
    const observed = observationOf({ vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }) });
    // @ts-expect-error: a raw template would let the plan derive the networks again
    expect(observed.vm?.spec.template).to.equal(undefined);
    // @ts-expect-error: so would the networks of a raw VMI
    expect(observed.vmi?.spec.networks).to.equal(undefined);
  });
});
