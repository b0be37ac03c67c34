import { expect } from 'chai';
import { describeStory, itOnBed } from '../../bed/story/describe.js';
import { rejectionMessage } from '../../bed/story/rejection.js';

describeStory('A tenant with all rights in a namespace', (story) => {
  itOnBed('cannot overload Holdfast with a NAD that has many ranges and exclusions', async (bed) => {
    const processes = [bed.controller, bed.webhook, bed.ipam];
    const pids = processes.map(({ pid }) => pid);
    const tenant = await story().tenant();
    const refused = tenant.putNetwork('small', { config: multiplied(500, 3000) });
    expect(await rejectionMessage(refused)).to.include(
      'spec.config.ipam.ipRanges has 500 elements: at most 16 are allowed',
    );
    await tenant.putNetwork('large', { config: multiplied(4000, 30_000) });
    await story().addresses.createNetwork('blue', ['10.30.60.0/24']);
    await story().runVm('vm1', { data: 'blue' });
    expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(['10.30.60.1/24']);
    expect(processes.map(({ pid }) => pid)).to.deep.equal(pids);
  });
});

/** The config of a NAD that names Holdfast with an escape. */
function multiplied(ranges: number, exclusions: number): string {
  const lists = {
    ipRanges: Array.from({ length: ranges }, () => ({ range: '10.0.0.0/8' })),
    exclude: Array.from({ length: exclusions }, (_, index) => `10.${index}`),
  };
  const ipam = `{"type":"hold\\u0066ast",${JSON.stringify(lists).slice(1)}`;
  return `{"cniVersion":"0.4.0","name":"bomb","type":"bridge","ipam":${ipam}}`;
}
