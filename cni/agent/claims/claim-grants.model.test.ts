import { expect } from 'chai';
import fc from 'fast-check';
import type { AddressLease } from '../../../api/address-lease.js';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { IPS_ALLOCATED } from '../../../api/names.js';
import type { Pod } from '../../../api/pod.js';
import { minCooldownMs } from '../../../addressing/lease/lease-times.js';
import { StatusError, TransportError } from '../../../kube/errors.js';
import { AgentWorld, SelfAdvancingClock } from '../testing/agent-world.js';
import { makeClaim, makeVm, makeVmi } from '../../../test/objects/kubevirt-objects.js';

const LASTS = [5, 6] as const;
type Last = (typeof LASTS)[number];
const VMS = ['vm1', 'vm2'] as const;
type Vm = (typeof VMS)[number];

/** Events in the cluster, at any time, also while an agent waits for an answer. */
type Happening =
  /** The claim is created or recreated, and gets its address unless another owner has it. */
  | { what: 'claim'; vm: Vm; last: Last }
  /** The claim is deleted; its lease is released at once or never. */
  | { what: 'unclaim'; vm: Vm; releases: boolean }
  /** The lease of an existing claim is released or deleted. */
  | { what: 'release' | 'lose'; last: Last }
  /** The VM is deleted and recreated under its name. Its leases may stay. */
  | { what: 'vm'; vm: Vm; releases: boolean }
  /** The claim's status shows an address without a lease. */
  | { what: 'mirror'; vm: Vm; last: Last }
  | { what: 'fault'; fault: 'none' | 'unsent' | 'overloaded' }
  | { what: 'time'; ms: number };
type Event = Happening | Question;

/** An ADD of a launcher; or a prefetch; or a prefetch, then an outage of the API server, then an ADD. */
interface Question {
  what: 'add' | 'look' | 'outage';
  vm: Vm;
  /** 0: the newest launcher of the VM, 1: the one before. */
  age: number;
  meanwhile: readonly Happening[];
}

const vm = fc.constantFrom(...VMS);
const last = fc.constantFrom(...LASTS);
const fault = fc.constantFrom(...(['none', 'none', 'unsent', 'overloaded'] as const));
const is = <W extends string>(what: W) => fc.constant(what);
const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ what: is('claim'), vm, last }) },
  { weight: 2, arbitrary: fc.record({ what: is('unclaim'), vm, releases: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom('release' as const, 'lose' as const), last }) },
  { weight: 1, arbitrary: fc.record({ what: is('vm'), vm, releases: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ what: is('mirror'), vm, last }) },
  { weight: 4, arbitrary: fc.record({ what: is('fault'), fault }) },
  { weight: 6, arbitrary: fc.record({ what: is('time'), ms: fc.constantFrom(10, 1_000, 10_000, 29_000, 61_000) }) },
);
const meanwhile = fc.array(happening, { maxLength: 3 });
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 6, arbitrary: happening },
  {
    weight: 5,
    arbitrary: fc.record({
      what: fc.constantFrom('add' as const, 'look' as const, 'outage' as const),
      vm,
      age: fc.constantFrom(0, 0, 0, 1),
      meanwhile,
    }),
  },
);

/** The time in which a VM's claim held an address. */
interface Held {
  readonly ip: string;
  readonly vmUid: string;
  readonly from: number;
  to: number;
}

/** A cluster that follows the rules of leases and records all events. */
class Scene {
  readonly clock = new SelfAdvancingClock();
  readonly world = new AgentWorld(this.clock);
  readonly held: Held[] = [];
  granted = 0;
  /** Those of them during an outage of the API server. */
  recalled = 0;
  readonly #launchers = new Map<Vm, Pod[]>();
  #serial = 0;

  constructor() {
    for (const name of VMS) this.#makeVm(name);
    this.do({ what: 'claim', vm: 'vm1', last: 5 });
  }

  do(happening: Happening): void {
    switch (happening.what) {
      case 'claim':
        this.#claim(happening.vm, happening.last);
        break;
      case 'unclaim':
        this.world.remove('ipamclaims', `vms/${happening.vm}.data`);
        if (happening.releases) this.#releaseAll(happening.vm);
        break;
      case 'release':
        this.#release(happening.last);
        break;
      case 'lose':
        this.#end(happening.last);
        this.world.remove('addressleases', leaseName(happening.last));
        break;
      case 'vm':
        this.world.remove('ipamclaims', `vms/${happening.vm}.data`);
        if (happening.releases) this.#releaseAll(happening.vm);
        this.#makeVm(happening.vm);
        break;
      case 'mirror':
        this.#mirror(happening.vm, happening.last);
        break;
      case 'fault':
        this.world.fault = FAULTS[happening.fault];
        break;
      case 'time':
        this.clock.advance(happening.ms);
        break;
    }
  }

  async ask({ what, vm: name, age, meanwhile: happenings }: Question): Promise<void> {
    const launchers = this.#launchers.get(name) ?? [];
    const pod = launchers[Math.max(0, launchers.length - 1 - age)]!;
    if (what === 'outage') {
      this.world.fault = undefined;
      await this.#look(pod);
      this.world.fault = FAULTS.unsent;
      for (const happening of happenings) this.do(happening);
      this.judge(await this.world.add(pod, 0, this.world.call(3_000)), pod);
      return;
    }
    const left = happenings.values();
    this.world.before = () => {
      const next = left.next();
      if (next.done !== true) this.do(next.value);
    };
    if (what === 'look') await this.#look(pod);
    else this.judge(await this.world.add(pod, 0, this.world.call(3_000)), pod);
    this.world.before = () => undefined;
  }

  async #look(pod: Pod): Promise<void> {
    await this.world.claimed.check({ ...this.world.attachment(pod), containerId: 'none' }, [], this.world.call(3_000));
  }

  judge(answer: string, pod: Pod): void {
    if (/^\d+ /.test(answer)) return;
    const now = this.clock.now();
    const [reference] = pod.metadata.ownerReferences ?? [];
    const vmUid = reference?.uid.replace('-vmi-', '-vm-');
    const since = now - this.world.maxStalenessMs;
    const right = this.held.some((each) => each.ip === answer && each.vmUid === vmUid && each.to >= since);
    expect(right, `${answer} was never lately that of ${vmUid ?? ''}: ${JSON.stringify(this.held)}`).to.equal(true);
    const other = this.held.find((each) => each.ip === answer && each.vmUid !== vmUid && each.to === Infinity);
    expect(other, `${answer} is that of another VM by now`).to.equal(undefined);
    this.granted++;
    if (this.world.fault !== undefined) this.recalled++;
  }

  #makeVm(name: Vm): void {
    const generation = String(++this.#serial);
    const [vmUid, vmiUid] = [`${name}-vm-${generation}`, `${name}-vmi-${generation}`];
    const made = makeVm(name);
    made.metadata.uid = vmUid;
    const vmi = makeVmi(name, { data: 'blue' }, { vm: vmUid });
    vmi.metadata.uid = vmiUid;
    this.world.put('virtualmachines', made);
    this.world.put('virtualmachineinstances', vmi);
    const pod = this.world.launcher(name, { name: `launcher-${generation}`, phase: 'Running' });
    pod.metadata.ownerReferences![0]!.uid = vmiUid;
    this.#launchers.set(name, [...(this.#launchers.get(name) ?? []), pod]);
    // earlier launchers have ended, otherwise the VM could not have been recreated
    this.world.podInformer.delete(`vms/launcher-${generation}`);
  }

  #claim(name: Vm, wanted: Last): void {
    const vmUid = this.world.objects.get(`virtualmachines vms/${name}`)!.metadata.uid!;
    const now = this.clock.now();
    const before = this.#lease(wanted);
    const releasedAt = Date.parse(before?.spec.releasedAt ?? '');
    const isSame = before?.spec.owner?.workloadUID === vmUid;
    // a restore hold keeps the address of a lost lease for its claim until the cool-down is over
    const lastHeld = Math.max(0, ...this.held.filter(({ ip }) => ip === ipOf(wanted)).map(({ to }) => to));
    const coolsDown = !isSame && now < lastHeld + minCooldownMs(this.world.maxStalenessMs);
    if (coolsDown || (before !== undefined && Number.isNaN(releasedAt))) return;
    const claim = makeClaim(name, 'data', { ownerUid: vmUid });
    claim.metadata.uid = `${name}-claim-${++this.#serial}`;
    this.#releaseAll(name);
    this.world.addClaim(claim, [ipOf(wanted)]);
    this.held.push({ ip: ipOf(wanted), vmUid, from: now, to: Infinity });
  }

  #mirror(name: Vm, last: Last): void {
    const uid = this.world.objects.get(`virtualmachines vms/${name}`)?.metadata.uid;
    const found = this.world.objects.get(`ipamclaims vms/${name}.data`) as IPAMClaim | undefined;
    const claim = found ?? makeClaim(name, 'data', { ownerUid: uid ?? '' });
    claim.metadata.uid = found?.metadata.uid ?? `${name}-claim-${++this.#serial}`;
    claim.status = { ips: [ipOf(last)], conditions: [ALLOCATED] };
    this.world.put('ipamclaims', claim);
  }

  #releaseAll(name: Vm): void {
    for (const each of LASTS) {
      const lease = this.#lease(each);
      if (lease?.spec.owner?.name === `${name}.data`) this.#release(each);
    }
  }

  #release(which: Last): void {
    const lease = this.#lease(which);
    if (lease === undefined || lease.spec.releasedAt !== undefined) return;
    lease.spec.releasedAt = new Date(this.clock.wall()).toISOString();
    this.#end(which);
  }

  #lease(which: Last): AddressLease | undefined {
    return this.world.objects.get(`addressleases ${leaseName(which)}`) as AddressLease | undefined;
  }

  #end(which: Last): void {
    for (const each of this.held) if (each.ip === ipOf(which)) each.to = Math.min(each.to, this.clock.now());
  }
}

const ALLOCATED = {
  type: IPS_ALLOCATED,
  status: 'True' as const,
  reason: 'SuccessfulAllocation',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
};

const FAULTS = {
  none: undefined,
  unsent: new TransportError('unsent', 'connection refused'),
  overloaded: new StatusError({ request: 'GET', status: 503, reason: 'ServiceUnavailable', message: 'later' }),
};

const ipOf = (last: Last) => `10.0.0.${last}/24`;

const leaseName = (last: Last) => `blue.10-0-0-${last}`;

describe('the addresses of claims, in any order of events', function () {
  this.timeout(120_000);

  it('are given only to pods whose claim held them within --max-staleness', async () => {
    let granted = 0;
    let recalled = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 40, size: 'max' }), async (events) => {
        const scene = new Scene();
        for (const each of events) {
          if ('age' in each) await scene.ask(each);
          else scene.do(each);
        }
        granted += scene.granted;
        recalled += scene.recalled;
      }),
      { numRuns: Number(process.env.MODEL_RUNS ?? 600) },
    );
    // a model without grants proves nothing
    expect(granted).to.be.greaterThan(500);
    expect(recalled).to.be.greaterThan(100);
  });
});
