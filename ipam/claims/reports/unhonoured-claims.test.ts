import { expect } from 'chai';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { EventSubject } from '../../../kube/events.js';
import { silentLogger } from '../../../kube/log.js';
import { ManualClock } from '../../../test/manual-clock.js';
import { claim } from '../../../test/objects/workload-objects.js';
import type { Resolution } from '../../../addressing/directory/resolution.js';
import type { ClaimPod } from '../running/claim-pods.js';
import { reportUnhonouredClaims } from './unhonoured-claims.js';

const START = Date.UTC(2026, 0, 1);
const AFTER_MS = 60_000;
const FOREIGN: Resolution = { kind: 'foreign', message: 'NAD vms/blue delegates IPAM to host-local' };

function pod(name: string, more: Partial<ClaimPod> = {}): ClaimPod {
  const metadata = { name, namespace: 'vms', uid: `${name}-uid` };
  return { metadata, isTerminal: false, claims: ['vm1.data'], hasNode: true, ...more };
}

describe('reports of claims that no IPAM honours', () => {
  const clock = () => new ManualClock(START);

  class Bed {
    readonly clock = clock();
    readonly events: string[] = [];
    readonly messages: string[] = [];
    claims: IPAMClaim[] = [claim()];
    claimPods: ClaimPod[] = [];
    open = true;
    resolve: (claim: Pick<IPAMClaim, 'metadata'>) => Resolution = () => FOREIGN;
    readonly unhonoured = reportUnhonouredClaims({
      claims: { list: () => this.claims },
      pods: { podsOf: () => this.claimPods },
      directory: { resolve: (one) => this.resolve(one) },
      events: {
        event: ({ kind, metadata }: EventSubject, type, reason, text) => {
          this.messages.push(text);
          this.events.push(`${type} ${reason} on ${kind} ${metadata.name}: ${/pod (\S+):/.exec(text)?.[1] ?? ''}`);
        },
      },
      clock: this.clock,
      log: silentLogger,
      gate: { isOpen: () => this.open },
      config: { unhonouredAfterMs: AFTER_MS },
    });

    async until(seconds: number): Promise<void> {
      await this.clock.stepThrough(START + seconds * 1_000);
    }
  }

  let bed: Bed;
  beforeEach(() => {
    bed = new Bed();
    bed.unhonoured.start();
  });
  afterEach(() => bed.unhonoured.stop());

  const about = (name: string) => [
    `Warning IPAMClaimNotHonoured on IPAMClaim vm1.data: ${name}`,
    `Warning IPAMClaimNotHonoured on VirtualMachine vm1: ${name}`,
  ];

  it('say what to do', async () => {
    bed.claimPods = [pod('p')];
    await bed.until(59);
    expect(bed.messages).to.deep.equal([]);
    await bed.until(70);
    expect(bed.messages[0]).to.equal(
      'IPAMClaim vm1.data got no address within 60 s after the start of pod p: NAD vms/blue delegates IPAM to host-local, ' +
        'and no other IPAM honours the claim. Let the NAD delegate IPAM to "holdfast" or to another IPAM that honours claims, ' +
        'add spec.guest to the AddressPool of a network whose NADs have no IPAM, or remove allowPersistentIPs from the config of the NAD',
    );
  });

  const { hasNode: _none, ...unbound } = pod('p');
  const leaving = { ...pod('p'), metadata: { ...pod('p').metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  const rows: { name: string; claim?: IPAMClaim; pod?: ClaimPod; resolution?: Resolution; told?: true }[] = [
    { name: 'are made even if the status of the claim lacks fields', claim: { ...claim(), status: {} }, told: true },
    { name: 'are not made if it has addresses', claim: claim({ ips: ['10.0.0.5/24'] }) },
    { name: 'are not made while it is being deleted', claim: claim({ deleting: true }) },
    { name: 'are not made if Holdfast has no pool for its network', resolution: { kind: 'unserved', message: '' } },
    { name: 'are not made if a pool serves it', resolution: { kind: 'served', pool: {} as never } },
    { name: 'are not made while its pod has no node', pod: unbound },
    {
      name: 'are not made for a launcher that does not reference it',
      pod: pod('p', { claims: [], vmi: { name: 'vm1', uid: 'vmi-uid' } }),
    },
    { name: 'are not made for a pod that is being deleted', pod: leaving },
  ];
  for (const row of rows) {
    it(row.name, async () => {
      bed.claims = [row.claim ?? claim()];
      bed.claimPods = [row.pod ?? pod('p')];
      bed.resolve = () => row.resolution ?? FOREIGN;
      await bed.until(300);
      expect(bed.events).to.deep.equal(row.told ? about('p') : []);
    });
  }

  it('go to the claim and its VM, once for each pod', async () => {
    bed.claimPods = [pod('p')];
    await bed.until(300);
    expect(bed.events).to.deep.equal(about('p'));
    bed.claimPods = [pod('p'), pod('q')];
    await bed.until(355);
    expect(bed.events).to.have.length(2);
    await bed.until(375);
    expect(bed.events).to.deep.equal([...about('p'), ...about('q')]);
  });

  it('are repeated while it lasts, because the API server deletes an event after an hour', async () => {
    bed.claimPods = [pod('p')];
    await bed.until(35 * 60);
    expect(bed.events).to.deep.equal([...about('p'), ...about('p')]);
  });

  it('are not made while the gate is closed', async () => {
    bed.open = false;
    bed.claimPods = [pod('p')];
    await bed.until(300);
    expect(bed.events).to.deep.equal([]);
  });

  it('continue if the check of one claim fails', async () => {
    bed.claimPods = [pod('p')];
    bed.resolve = ({ metadata: { name } }) => {
      if (name === 'bad') throw new TypeError('bad NAD');
      return FOREIGN;
    };
    bed.claims = [claim({ name: 'bad' }), claim()];
    await bed.until(70);
    expect(bed.events).to.deep.equal(about('p'));
  });

  it('read no NAD for claims that no pod uses', async () => {
    let asked = 0;
    bed.resolve = () => {
      asked++;
      return FOREIGN;
    };
    await bed.until(300);
    expect(asked).to.equal(0);
    bed.claimPods = [pod('p')];
    await bed.until(310);
    expect(asked).to.be.greaterThan(0);
  });
});
