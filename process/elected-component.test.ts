import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import { Client } from '../kube/client.js';
import { systemClock } from '../kube/clock.js';
import { InformerRegistry } from '../kube/informers/informers.js';
import { silentLogger } from '../kube/log.js';
import { NODES } from '../kube/resources.js';
import { MemoryTransport } from '../kube/testing/memory-transport.js';
import type { Component } from './context.js';
import { type ElectedContext, createElectedComponent } from './elected-component.js';
import { Metrics } from './metrics.js';

describe('an elected component', () => {
  const kube = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'vms', uid: 'u' } };
  let steps: string[];
  let api: MemoryTransport;
  let informers: InformerRegistry;
  let component: Component;
  let elected: ElectedContext;
  let begin: Promise<void>;
  let problem: string | undefined;
  let finishWork: () => void;

  beforeEach(() => {
    steps = [];
    problem = undefined;
    api = new MemoryTransport();
    const metrics = new Metrics();
    const shared = { client: new Client(api), clock: systemClock, random: () => 0, log: silentLogger };
    informers = new InformerRegistry({ ...shared, metrics: metrics.kube });
    const config = { leaderElect: true, namespace: 'holdfast' };
    const context = { ...shared, informers, metrics };
    const finished = new Promise<void>((resolve) => (finishWork = resolve));
    begin = new Promise((resolve) => {
      component = createElectedComponent({ name: 'ipam', context, config, identity: 'a' }, (given) => {
        elected = given;
        return {
          start: () => Promise.resolve(void steps.push('start')),
          ready: () => problem,
          startWork: () => resolve(void steps.push('work')),
          stopWork: () => finished.then(() => void steps.push('end')),
          stop: async (ended) => {
            steps.push('stop');
            await ended;
            steps.push('ended');
          },
        };
      });
    });
  });

  it('is ready when its caches are filled and its work is, and works as the holder of its Lease', async () => {
    informers.get({ resource: NODES });
    expect(component.ready?.()).to.contain('nodes');
    await component.start();
    await begin;
    expect(component.ready?.()).to.equal(undefined);
    problem = 'not listening';
    expect(component.ready?.()).to.equal('not listening');
    expect(steps).to.deep.equal(['start', 'work']);
    const lease = api.requests.find(({ method, path }) => method === 'POST' && path.includes('/leases'));
    expect(lease?.body).to.have.nested.property('metadata.name', 'holdfast-ipam');
    finishWork();
    await component.stop();
    await informers.stop();
  });

  it('tells its work at once that it stops, waits for the end of the term, and then writes the last events', async () => {
    await component.start();
    await begin;
    const stopped = component.stop();
    await setImmediate();
    expect(steps).to.deep.equal(['start', 'work', 'stop']);
    elected.events.event(kube, 'Normal', 'Stopped', 'the last event');
    finishWork();
    await stopped;
    expect(steps.slice(3)).to.deep.equal(['end', 'ended']);
    const event = api.requests.find(({ method, path }) => method === 'POST' && path.includes('/events'));
    expect(event?.body).to.have.nested.property('source.component', 'holdfast-ipam');
  });
});
