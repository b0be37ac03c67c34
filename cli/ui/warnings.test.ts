import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import { AllocationReason, IPS_ALLOCATED } from '../../api/names.js';
import { TransportError } from '../../kube/errors.js';
import { EVENTS } from '../../kube/events.js';
import { LEASES } from '../../kube/leader-election.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';
import type { ApiRequest } from '../../kube/transport/transport.js';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { NAMESPACE, claim, vm } from '../../test/objects/workload-objects.js';
import { DEPLOYMENTS, INSTALLED } from '../installation.js';
import { workloadOf } from '../testing/healthy-cluster.js';
import { blueNad, claimWithCondition } from '../testing/vm-story.js';
import { type PoolView, type ServerView, type VmView, type WaitingView, emptyText } from './protocol.js';
import type { Ui } from './serve-ui.js';
import { ViewReader, enter, startUi } from './testing/ui-client.js';
import { WatchedCluster } from './testing/watched-cluster.js';

describe('What the web page warns about first', () => {
  let cluster: WatchedCluster;
  let ui: Ui;
  const readers: ViewReader[] = [];

  beforeEach(async () => {
    cluster = new WatchedCluster();
    cluster.tracker.put(DEPLOYMENTS, workloadOf('ipam'));
    cluster.tracker.put(ADDRESS_POOLS, adminPool('blue'));
    cluster.tracker.put(VIRTUAL_MACHINES, vm({ data: 'blue' }));
    cluster.tracker.put(IPAM_CLAIMS, claim({ created: '2026-01-01T00:00:00Z' }));
    ui = await startUi(cluster, { clusterFlags: ' --context lab' });
  });
  afterEach(async () => {
    for (const reader of readers.splice(0)) reader.close();
    await ui.stop();
  });

  async function open(query: string): Promise<ViewReader> {
    const reader = ViewReader.open(ui, await enter(ui), query);
    readers.push(reader);
    return reader;
  }

  it('does not draw a map without leases: every address would look free', async () => {
    await ui.stop();
    cluster.forbidden.set('addressleases', ['*']);
    ui = await startUi(cluster);
    const view = await (
      await open('view=pool&name=blue')
    ).until<PoolView & ServerView>(
      ({ parts, pool }) => pool !== undefined && parts.some(({ state }) => state === 'refused'),
    );
    expect(view.window).to.equal(undefined);
    expect(emptyText(view.parts, 'addressleases', 'none')).to.include('not all addressleases could be read');
  });

  it('does not draw a map while the leases are read, and does not take an interruption for the end of the list', async () => {
    await ui.stop();
    const { before } = cluster;
    let isSlow = true;
    cluster.before = (request: ApiRequest) => {
      if (isSlow && request.path.endsWith('/addressleases') && request.query?.limit !== 1)
        throw new TransportError('unsent', 'connect ECONNREFUSED 192.0.2.1:6443');
      return before(request);
    };
    cluster.tracker.put(ADDRESS_LEASES, leaseOf('10.0.0.5', 1, { namespace: NAMESPACE, name: 'vm1.data' }));
    ui = await startUi(cluster);
    const reader = await open('view=pool&name=blue');
    const ofLeases = ({ parts }: ServerView) => parts.find(({ resource }) => resource.startsWith('addressleases'));
    const view = await reader.until<PoolView & ServerView>(
      (each) => each.pool !== undefined && ofLeases(each)?.state === 'interrupted',
    );
    expect(view.window).to.equal(undefined);
    expect(ofLeases(view)?.isListed).to.equal(undefined);
    isSlow = false;
    const { window, parts } = await reader.until<PoolView & ServerView>((each) => ofLeases(each)?.isListed === true);
    expect(window?.states?.[5]).to.equal('#');
    expect(emptyText(parts, 'addressleases', 'none')).to.equal('none');
  });

  for (const view of ['pools', 'vms', `vm&namespace=${NAMESPACE}&name=vm1`, 'search&q=a'])
    it(`says that ipam has no leader, on the view ${view}`, async () => {
      cluster.tracker.put(LEASES, leaderOf('holdfast-ipam', ''), leaderOf('holdfast-controller', 'pod-1'));
      const { alerts } = await (await open(`view=${view}`)).until<ServerView>((each) => each.alerts.length > 0);
      expect(alerts.map(({ object, problem }) => `${object}: ${problem}`)).to.deep.equal([
        'Lease holdfast-system/holdfast-ipam: has no leader',
      ]);
    });

  it('says that ipam was killed, although the last leader still stands in its Lease', async () => {
    cluster.tracker.put(LEASES, leaderOf('holdfast-ipam', 'pod-1', '2026-01-01T00:00:00Z'));
    const { alerts } = await (await open('view=pools')).until<ServerView>((each) => each.alerts.length > 0);
    expect(alerts[0]?.problem).to.match(/^pod-1 has not renewed it for \d+ s$/);
  });

  it('says to users who may read no leaders that ipam does not answer', async () => {
    cluster.forbidden.set('leases', ['*']);
    cluster.tracker.put(EVENTS, event('IPAMNotAnswering', 'Warning', '2026-01-01T00:00:00Z'));
    const { alerts } = await (await open('view=vms')).until<ServerView>((each) => each.alerts.length > 0);
    expect(alerts[0]?.problem).to.include('IPAMNotAnswering');
  });

  it('says that the user must log in again when the token has ended, about watches and about what is read', async () => {
    await ui.stop();
    cluster.isLoggedOut = true;
    ui = await startUi(cluster);
    const { parts, failure } = await (
      await open('view=waiting')
    ).until<WaitingView & ServerView>(
      (view) => view.failure !== undefined && view.parts.every(({ state }) => state === 'interrupted'),
    );
    for (const text of [failure, ...parts.map(({ message }) => message)]) expect(text).to.include('log in again');
  });

  it('names commands for the cluster and user with which the page was started', async () => {
    cluster.tracker.put(IPAM_CLAIMS, claimWithCondition([IPS_ALLOCATED, 'False', AllocationReason.Conflict, 'taken']));
    cluster.tracker.put(NETWORK_ATTACHMENT_DEFINITIONS, blueNad());
    const command = 'kubectl holdfast --context lab who ADDRESS';
    const waiting = await open('view=waiting');
    await waiting.until<WaitingView & ServerView>(({ findings }) => JSON.stringify(findings ?? '').includes(command));
    const story = await open(`view=vm&namespace=${NAMESPACE}&name=vm1`);
    await story.until<VmView & ServerView>(({ story: told }) => JSON.stringify(told ?? '').includes(command));
  });

  it('shows warnings of a VM before later events that are routine', async () => {
    cluster.tracker.put(
      EVENTS,
      event('Started', 'Normal', '2026-01-03T00:00:00Z'),
      event('AddressTaken', 'Warning', '2026-01-01T00:00:00Z'),
      event('AddressConflict', 'Warning', '2026-01-02T00:00:00Z'),
    );
    const reader = await open(`view=vm&namespace=${NAMESPACE}&name=vm1`);
    const { events } = await reader.until<VmView & ServerView>((each) => each.events.total === 3);
    expect(events.rows.map(({ reason }) => reason)).to.deep.equal(['AddressConflict', 'AddressTaken', 'Started']);
  });
});

function leaderOf(name: string, holderIdentity: string, renewTime = new Date().toISOString()): KubeObject {
  const [key = '', value = ''] = INSTALLED.split('=');
  return {
    metadata: { namespace: 'holdfast-system', name, labels: { [key]: value } },
    spec: { holderIdentity, renewTime },
  } as KubeObject;
}

function event(reason: string, type: string, lastTimestamp: string): KubeObject {
  return {
    metadata: { namespace: NAMESPACE, name: `vm1.${reason}` },
    involvedObject: { kind: 'VirtualMachine', name: 'vm1', namespace: NAMESPACE, apiVersion: 'kubevirt.io/v1' },
    ...{ type, reason, message: 'about IPAMClaim vms/vm1.data', count: 1, lastTimestamp },
  } as KubeObject;
}
