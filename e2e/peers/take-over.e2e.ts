import { expect } from 'chai';
import { environment } from '../../bed/story/hooks.js';
import { IpamExtensions, VARIANTS, type Variant } from '../../bed/ipam-extensions/ipam-extensions.js';
import { OvnAddresses } from '../../bed/ipam-extensions/ovn-addresses.js';
import { whyNotProgram } from '../../bed/ipam-extensions/program.js';
import { recordWrites } from '../../bed/ipam-extensions/recorder.js';
import { readRecording, writeRecording } from '../../bed/ipam-extensions/recording.js';
import { SuspendedHoldfast } from '../../bed/ipam-extensions/suspended-holdfast.js';
import { describeOnBed } from '../../bed/story/describe.js';

/** The networks of VMs. Those with odd names have other claim names in Holdfast than in kubevirt/ipam-extensions. */
const NETWORKS: readonly Readonly<Record<string, string>>[] = [
  { data: 'blue' },
  { multus_iface: 'blue' },
  { Data: 'blue' },
  { 'net_1-': 'blue' },
  { data: 'blue', extra: 'green' },
];
const ON_ONE_NAD = { data: 'blue', more: 'blue' };

/** Webhooks are called in the order of these names. Holdfast's is `holdfast-webhook`. */
const ORDERS = {
  before: 'a-configuration-of-ipam-extensions',
  after: 'kubevirt-ipam-controller-mutating-webhook-configuration',
};

const CHURN_MINUTES = Number(process.env.CHURN_MINUTES ?? '1');

async function skipWithout(variant: Variant, test: Mocha.Context): Promise<void> {
  const problem = await variant.whyNot();
  if (problem === undefined) return;
  process.stdout.write(`      left out: ${problem}\n`);
  test.skip();
}

describeOnBed('kubevirt/ipam-extensions and Holdfast', (story, bed) => {
  let ovn: OvnAddresses | undefined;
  let theirs: IpamExtensions | undefined;
  let suspended: SuspendedHoldfast | undefined;

  afterEach('leave Holdfast alone on the bed', async () => {
    const [program, holdfast, addresses] = [theirs, suspended, ovn];
    theirs = suspended = ovn = undefined;
    try {
      await program?.remove();
    } finally {
      await holdfast?.resume();
      await addresses?.close();
    }
  });

  async function openNetworks(): Promise<OvnAddresses> {
    ovn = await OvnAddresses.open(story(), environment());
    return ovn;
  }

  async function install(variant: Variant, configuration?: string): Promise<void> {
    theirs = await IpamExtensions.install(bed(), variant, configuration);
  }

  async function removeTheirs(): Promise<void> {
    await theirs?.remove();
    theirs = undefined;
  }

  async function suspendHoldfast(): Promise<void> {
    suspended = await SuspendedHoldfast.suspend(bed());
  }

  async function resumeHoldfast(): Promise<void> {
    await suspended?.resume();
    suspended = undefined;
  }

  for (const [variant, program] of Object.entries(VARIANTS)) {
    const count = variant === 'its recorded writes' ? 6 : 20;

    it(`move ${String(count)} VMs from one to the other and back without a change of address, with ${variant}`, async function () {
      this.timeout(600_000);
      await skipWithout(program, this);
      const addresses = await openNetworks();
      const vms = Array.from({ length: count }, (_, index) => `vm${String(index + 1)}`);
      const networksOf = (index: number) => NETWORKS[index % NETWORKS.length] ?? {};
      const interfaces = new Map(vms.map((vm, index) => [vm, Object.keys(networksOf(index)).length]));
      const waitAll = async () => {
        await Promise.all([...interfaces].map(([vm, wanted]) => addresses.waitServed(vm, wanted)));
      };

      await suspendHoldfast();
      await install(program);
      await Promise.all(vms.map((vm, index) => story().createVm(vm, networksOf(index))));
      await Promise.all(vms.map((vm) => story().waitRunning(vm)));
      await waitAll();
      const before = await addresses.claims();

      await resumeHoldfast();
      await addresses.waitAdopted();
      await removeTheirs();
      expect(await addresses.claims()).to.deep.equal(before);
      const [deleted = '', ...others] = vms;
      const unplugged = vms.filter((_, index) => 'extra' in networksOf(index));
      await Promise.all([
        story().deleteVm(deleted, 'Foreground'),
        ...unplugged.map((vm) => story().unplugInterface(vm, 'extra')),
        ...others
          .filter((vm) => !unplugged.includes(vm))
          .map((vm, index) => (index % 2 === 0 ? story().restart(vm) : story().migrate(vm, 'Succeeded'))),
      ]);
      interfaces.delete(deleted);
      for (const vm of unplugged) interfaces.set(vm, 1);
      const gone = [`${deleted}.data`, ...unplugged.map((vm) => `${vm}.extra`)];
      const kept = Object.fromEntries(Object.entries(before).filter(([name]) => !gone.includes(name)));
      await story().waitForClaims(Object.keys(kept));
      await Promise.all(unplugged.map((vm) => story().restart(vm)));
      await waitAll();
      expect(await addresses.claims()).to.deep.equal(kept);

      await install(program);
      await suspendHoldfast();
      await Promise.all(
        others.map((vm, index) => (index % 2 === 0 ? story().migrate(vm, 'Succeeded') : story().restart(vm))),
      );
      await waitAll();
      expect(await addresses.claims()).to.deep.equal(kept);
      await Promise.all(others.map((vm) => story().deleteVm(vm, 'Background')));
      await story().waitForClaims([]);
      expect(addresses.releasedInUse).to.deep.equal([]);
    });

    for (const [order, configuration] of Object.entries(ORDERS)) {
      it(`start every VM side by side with one address for each interface, with ${variant} called ${order} Holdfast`, async function () {
        await skipWithout(program, this);
        const addresses = await openNetworks();
        await install(program, configuration);
        const vms = [...NETWORKS, ON_ONE_NAD].map((networks, index) => ({ name: `vm${String(index + 1)}`, networks }));
        const waitAll = async () => {
          const served = await Promise.all(
            vms.map(({ name, networks }) => addresses.waitServed(name, Object.keys(networks).length)),
          );
          return Object.assign({}, ...served) as Record<string, string>;
        };
        await Promise.all(vms.map(({ name, networks }) => story().createVm(name, networks)));
        await Promise.all(vms.map(({ name }) => story().waitRunning(name)));
        const before = await waitAll();
        expect(new Set(Object.values(before)).size).to.equal(8);
        await Promise.all(
          vms.map(({ name }, index) => (index % 2 === 0 ? story().restart(name) : story().migrate(name, 'Succeeded'))),
        );
        expect(await waitAll()).to.deep.equal(before);
        await removeTheirs(); // its claims go with the VMs, too
        await Promise.all(vms.map(({ name }) => story().deleteVm(name, 'Background')));
        await story().waitForClaims([]);
        expect(addresses.releasedInUse).to.deep.equal([]);
      });
    }

    it(`do no harm to each other while VMs come, change and go, with ${variant}`, async function () {
      this.timeout((CHURN_MINUTES + 3) * 60_000);
      await skipWithout(program, this);
      const addresses = await openNetworks();
      await install(program);
      const end = performance.now() + CHURN_MINUTES * 60_000;
      const liveOnce = async (name: string, index: number, round: number) => {
        const networks = NETWORKS[(index + round) % NETWORKS.length] ?? {};
        const interfaces = Object.keys(networks).length;
        await story().runVm(name, networks);
        const before = await addresses.waitServed(name, interfaces);
        if ((index + round) % 2 === 0) await story().restart(name);
        else await story().migrate(name, 'Succeeded');
        expect(await addresses.waitServed(name, interfaces)).to.deep.equal(before);
        await story().plugInterface(name, 'plugged', 'green');
        await story().waitAttached(name, 'plugged');
        await story().unplugInterface(name, 'plugged');
        await story().waitDetached(name, 'plugged');
        await story().deleteVm(name, round % 3 === 0 ? 'Foreground' : 'Background');
        await story().waitGone(name);
        expect(addresses.releasedInUse).to.deep.equal([]);
      };
      const worker = async (index: number) => {
        for (let round = 0; performance.now() < end; round++) {
          await liveOnce(`vm${String(index)}`, index, round);
        }
      };
      await Promise.all([0, 1, 2, 3].map(worker));
      await story().waitForClaims([]);
      expect(addresses.releasedInUse).to.deep.equal([]);
    });
  }

  it('are tested with a recording of what the program writes', async function () {
    const problem = await whyNotProgram();
    if (problem !== undefined) {
      process.stdout.write(`      left out: ${problem}\n`);
      this.skip();
    }
    const recorded = await recordWrites(bed(), story());
    if (process.env.UPDATE_RECORDING !== undefined) await writeRecording(recorded);
    expect(recorded).to.deep.equal(await readRecording());
  });
});
