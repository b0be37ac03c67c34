import { expect } from 'chai';
import type { Environment } from '../../bed/environment.js';
import type { Pod } from '../../api/pod.js';
import { faultsOf } from './faults.js';

function podWithContainer(id: string): Pod {
  const status = {
    containerStatuses: [{ containerID: `containerd://${id}` }],
    conditions: [{ type: 'Ready', status: 'True' }],
  };
  return { metadata: { name: 'ipam' }, spec: { nodeName: 'node-1' }, status };
}

describe('The demo on real nodes', () => {
  it('kills the containers that run, not those that a restart left behind, and waits for others', async () => {
    let running = 'second';
    const killed: string[] = [];
    const node = {
      name: 'node-1',
      containers: () => Promise.resolve(['first', running]),
      killContainer: (id: string) => Promise.resolve(killed.push(id)),
    };
    const client = { list: () => Promise.resolve({ items: [podWithContainer(running)] }) };
    const faults = faultsOf({ realCluster: { client, nodes: [node] } } as unknown as Environment);
    const haveRestarted = await faults!.killHoldfast();
    expect(killed).to.deep.equal(['second']);
    running = 'third';
    await haveRestarted();
  });
});
