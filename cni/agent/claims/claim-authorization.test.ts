import { expect } from 'chai';
import { swappedClaimName } from '../../../api/ipam-claim.js';
import { AgentWorld, SelfAdvancingClock, worldWithVm } from '../testing/agent-world.js';
import { makeClaim, makeVmi } from '../../../test/objects/kubevirt-objects.js';
import { adminPool } from '../../../test/objects/pool-objects.js';
import { NAMESPACE, vmReference, vmiReference } from '../../../test/objects/workload-objects.js';

const GRANTED = '10.0.0.5/24';

describe('claim authorization', () => {
  interface Case {
    name: string;
    run: (world: AgentWorld) => Promise<string>;
    expect: string | RegExp;
  }

  const launchers: Case[] = [
    {
      name: "authorizes the claim of the launcher's VM that the element refers to",
      run: (world) => world.add(world.launcher('vm1', { references: { data: 'vm1.data' } })),
      expect: GRANTED,
    },
    {
      name: "authorizes the claim of the launcher's VM after virt-controller has removed the reference",
      run: (world) => world.add(world.launcher()),
      expect: GRANTED,
    },
    {
      name: 'authorizes the claim of a VMI without a VM',
      run: (world) => {
        world.put('virtualmachineinstances', makeVmi('vm1', { data: 'blue' }, { vm: null }));
        world.addClaim(makeClaim('vm1', 'data', { ownerUid: 'vm1-vmi-uid' }), ['10.0.0.5/24']);
        return world.add(world.launcher());
      },
      expect: GRANTED,
    },
    {
      name: 'authorizes an existing claim after the flag was removed from the NAD',
      run: (world) => {
        world.addNad('blue', false);
        return world.add(world.launcher());
      },
      expect: GRANTED,
    },
    {
      name: 'authorizes the second claim if the first one is for the previous network',
      run: (world) => {
        world.put('ipamclaims', makeClaim('vm1', 'data', { network: 'green', nad: `${NAMESPACE}/green` }));
        const name = swappedClaimName('vm1', 'data', 'blue');
        world.addClaim(makeClaim('vm1', 'data', { name }), ['10.0.0.6/24']);
        return world.add(world.launcher());
      },
      expect: '10.0.0.6/24',
    },
    {
      name: 'does not authorize the claim of another interface of the same VM',
      run: (world) => {
        world.addVm('vm1', { data: 'blue', more: 'blue' });
        world.addClaim(makeClaim('vm1', 'more'), ['10.0.0.6/24']);
        const networks = { data: 'blue', more: 'blue' };
        return world.add(world.launcher('vm1', { networks, references: { more: 'vm1.data', data: 'vm1.more' } }), 1);
      },
      expect: '10.0.0.6/24',
    },
    {
      name: 'returns no claim if there is none and the NAD does not allow claims',
      run: (world) => {
        world.addNad('blue', false);
        world.remove('ipamclaims', 'vms/vm1.data');
        return world.add(world.launcher());
      },
      expect: 'none',
    },
    {
      name: 'refuses a reference to a claim if the NAD does not allow claims',
      run: (world) => {
        world.addNad('blue', false);
        world.remove('ipamclaims', 'vms/vm1.data');
        return world.add(world.launcher('vm1', { references: { data: 'vm1.data' } }));
      },
      expect: /^100 .*there is no claim for it: .* does not allow persistent addresses; leave the key out/,
    },
    {
      name: 'returns no claim if there is none and the namespace has opted out',
      run: (world) => {
        world.remove('ipamclaims', 'vms/vm1.data');
        const labels = { 'ipam.holdfast.dev/persistent-ips': 'disabled' };
        world.put('namespaces', { metadata: { name: NAMESPACE, labels } });
        return world.add(world.launcher());
      },
      expect: 'none',
    },
    {
      name: 'returns no claim if there is none and the feature gate is off',
      run: (world) => {
        world.gateOpen = false;
        world.remove('ipamclaims', 'vms/vm1.data');
        return world.add(world.launcher());
      },
      expect: 'none',
    },
    {
      name: 'delays a launcher until the claim of a deleted VM of the same name is gone',
      run: (world) => {
        world.addClaim(makeClaim('vm1', 'data', { ownerUid: 'old-uid' }), ['10.0.0.5/24']);
        return world.add(world.launcher());
      },
      expect:
        /^11 IPAMClaim vms.vm1\.data belongs to another VirtualMachine vm1; the VM starts when that claim is gone/,
    },
    {
      name: 'never authorizes the claim of a deleted VM of the same name, even if the element refers to it',
      run: (world) => {
        world.addClaim(makeClaim('vm1', 'data', { ownerUid: 'old-uid' }), ['10.0.0.5/24']);
        return world.add(world.launcher('vm1', { references: { data: 'vm1.data' } }));
      },
      expect: /^11 IPAMClaim vms.vm1\.data belongs to another VirtualMachine vm1/,
    },
    {
      name: 'refuses a reference to the claim of another VM',
      run: (world) => {
        world.addVm('vm2', { data: 'blue' }, ['10.0.0.9/24']);
        return world.add(world.launcher('vm1', { references: { data: 'vm2.data' } }));
      },
      expect: /^100 .* is "vm2.data", which belongs to VirtualMachine vm2, expected "vm1.data": leave the key out/,
    },
    {
      name: 'refuses a launcher of another VMI of the same name',
      run: (world) => {
        const pod = world.launcher();
        pod.metadata.ownerReferences = [vmiReference('forged')];
        return world.add(pod);
      },
      expect: /^100 pod vms.virt-launcher-vm1-a is controlled by .* another object has that name now/,
    },
    {
      name: 'refuses a launcher whose VMI claims to be controlled by another VM of that name',
      run: (world) => {
        const vmi = makeVmi('vm1', { data: 'blue' });
        vmi.metadata.ownerReferences = [vmReference('forged')];
        world.put('virtualmachineinstances', vmi);
        return world.add(world.launcher());
      },
      expect: /^100 .* controlled by VirtualMachine vms.vm1, but another object has that name now/,
    },
    {
      name: 'refuses a launcher whose VMI and VM have different names, even if the UID is that of the VM',
      run: (world) => {
        const vmi = makeVmi('evil', { data: 'blue' });
        vmi.metadata.ownerReferences = [vmReference('vm1-vm-uid', 'vm1')];
        world.put('virtualmachineinstances', vmi);
        return world.add(world.launcher('evil', { references: { data: 'vm1.data' } }), 0, world.call(200));
      },
      expect: /^100 .* is "vm1.data", which belongs to VirtualMachine vm1, expected "evil.data"/,
    },
    {
      name: 'delays a launcher while the NAD names another network than the config of the runtime',
      run: (world) => {
        world.addNad('blue', true, 'green');
        world.addClaim(makeClaim('vm1', 'data', { network: 'green' }), ['10.0.0.5/24']);
        return world.add(world.launcher());
      },
      expect:
        /^11 IPAMClaim vms.vm1.data is for network "green", but .* is attached to network "blue", while its NAD names "green"/,
    },
  ];

  const pods: Case[] = [
    {
      name: 'returns no claim for a pod without a reference',
      run: (world) => world.add(world.tenantPod()),
      expect: 'none',
    },
    {
      name: 'refuses a pod that imitates the labels of a launcher',
      run: (world) => world.add(world.tenantPod(undefined, { labels: { 'kubevirt.io': 'virt-launcher' } })),
      expect: /^100 pod vms.p1 has the label kubevirt.io=virt-launcher, but no VirtualMachineInstance controls it/,
    },
    {
      name: 'refuses a pod that refers to the claim of a VM',
      run: (world) => world.add(world.tenantPod('vm1.data')),
      expect: /^100 .*pod vms.p1 is "vm1.data", which belongs to VirtualMachine vm1: only the pods of its VM may use/,
    },
    {
      name: 'refuses a pod that refers to the claim of a VM whose ownerReference was removed',
      run: (world) => {
        world.addClaim(makeClaim('vm1', 'data', { orphaned: true }), ['10.0.0.5/24']);
        return world.add(world.tenantPod('vm1.data'));
      },
      expect: /^100 /,
    },
    {
      name: "refuses a pod that refers to a claim of which only the finalizer shows that it is a VM's",
      run: (world) => {
        world.addClaim(makeClaim('vm1', 'data', { ownerUid: null }), ['10.0.0.5/24']);
        return world.add(world.tenantPod('vm1.data'));
      },
      expect: /^100 .*has no owner/,
    },
    {
      name: 'refuses a pod that refers to a claim in another address space than its NAD',
      run: (world) => {
        world.pools.set(adminPool('other', { addressSpace: 'fabric', namespaces: ['elsewhere'], born: 2 }));
        const pod = withOwnClaim(world, { ownerPod: 'p1' });
        world.remove('addressleases', 'blue.10-0-0-7');
        world.addLease('10.0.0.7/24', world.claim('mine'), 'fabric');
        return world.add(pod);
      },
      expect:
        /^100 IPAMClaim vms.mine has addresses in address space fabric, but network element 0 .* whose network is not in this address space/,
    },
    {
      name: 'delays a pod that refers to a missing claim',
      run: (world) => world.add(world.tenantPod('mine')),
      expect: /^11 .* is "mine", which does not exist: create it, or leave the key out/,
    },
    {
      name: 'authorizes a pod that is the owner pod of the claim it refers to',
      run: (world) => world.add(withOwnClaim(world, { ownerPod: 'p1' })),
      expect: '10.0.0.7/24',
    },
    {
      name: 'delays a pod that refers to a claim with another owner pod',
      run: (world) => world.add(withOwnClaim(world, { ownerPod: 'p0' })),
      expect: /^11 IPAMClaim vms.mine is used by pod vms.p0/,
    },
    {
      name: 'waits until the claim has an owner pod',
      run: (world) => world.add(withOwnClaim(world, {}), 0, world.call(2_000)),
      expect: /^11 IPAMClaim vms.mine has no owner pod yet; timeout/,
    },
    {
      name: 'refuses a pod that refers to a claim for another network',
      run: (world) => world.add(withOwnClaim(world, { ownerPod: 'p1', network: 'green' })),
      expect: /^100 .* is for network "green", but the interface is attached to network "blue"/,
    },
    {
      name: 'refuses a pod that refers to a claim on a network that does not allow claims',
      run: (world) => {
        world.addNad('blue', false);
        return world.add(withOwnClaim(world, { ownerPod: 'p1' }));
      },
      expect: /^100 .*NetworkAttachmentDefinition vms.blue does not allow persistent addresses/,
    },
    {
      name: 'delays a pod that refers to a claim that is being deleted',
      run: (world) => world.add(withOwnClaim(world, { ownerPod: 'p1', deleting: true })),
      expect: /^11 .* is being deleted/,
    },
  ];

  for (const [who, cases] of Object.entries({ 'of a launcher': launchers, 'of any other pod': pods })) {
    describe(who, () => {
      for (const { name, run, expect: expected } of cases) {
        it(name, async () => {
          const answer = await run(worldWithVm());
          if (typeof expected === 'string') expect(answer).to.equal(expected);
          else expect(answer).to.match(expected);
        });
      }
    });
  }

  it('waits for a claim that the controller is about to create', async () => {
    const clock = new SelfAdvancingClock();
    const world = new AgentWorld(clock);
    world.addVm();
    const claim = world.claim();
    world.remove('ipamclaims', 'vms/vm1.data');
    const pod = world.launcher();
    let steps = 0;
    clock.onStep = () => {
      if (++steps === 3) world.put('ipamclaims', claim);
    };
    expect(await world.add(pod)).to.equal(GRANTED);
    expect(steps).to.equal(3);
  });

  it('sends no request for a pod without a reference', async () => {
    const world = worldWithVm();
    await world.add(world.tenantPod());
    expect(world.reads).to.deep.equal([]);
  });
});

function withOwnClaim(
  world: AgentWorld,
  { ownerPod, network = 'blue', deleting }: { ownerPod?: string; network?: string; deleting?: boolean },
) {
  const deletion = deleting && { deletionTimestamp: '2026-01-01T00:00:00Z' };
  const claim = {
    metadata: { name: 'mine', namespace: NAMESPACE, uid: 'mine-uid', ...deletion },
    spec: { network, interface: 'net1' },
    status: { ips: [], ...(ownerPod !== undefined && { ownerPod: { name: ownerPod } }) },
  };
  world.addClaim(claim, ['10.0.0.7/24']);
  return world.tenantPod('mine');
}
