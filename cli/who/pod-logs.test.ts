import { expect } from 'chai';
import { Client } from '../../kube/client.js';
import { TransportHarness } from '../../test/https/transport-harness.js';
import { type Reply, type SeenRequest, status } from '../../test/https/fault-server.js';
import { findPastHolder } from './history.js';
import { findPodLogs } from './pod-logs.js';

const PODS = '/api/v1/namespaces/holdfast-system/pods';
const LEASE = { address: '10.0.0.5', addressSpace: 'lan', pool: 'blue', uid: 'l1', resourceVersion: '7' };
const owner = { kind: 'IPAMClaim', namespace: 'vms', name: 'vm1.data', uid: 'c1' };
const NO_PREVIOUS: Reply = { status: 400, body: status(400, 'BadRequest', 'previous terminated container not found') };

const line = (second: number, record: object) =>
  `${JSON.stringify({ audit: { time: `2030-01-01T00:00:${String(second).padStart(2, '0')}.000Z`, ...record } })}\n`;
const pod = (name: string, component: string, state = {}) => ({
  metadata: { namespace: 'holdfast-system', name, labels: { 'app.kubernetes.io/component': component } },
  spec: { containers: [{ name: 'ipam' }] },
  status: { containerStatuses: [{ name: 'ipam', state }] },
});
const forbidden = (resource: string, verb: string): Reply => ({
  status: 403,
  body: status(
    403,
    'Forbidden',
    `pods is forbidden: User "eve" cannot ${verb} resource "${resource}" in API group "" in the namespace "holdfast-system"`,
  ),
});

const BEGIN = line(1, { type: 'gap', reason: 'start' }) + line(1, { type: 'listed', scope: 'all' });
const LOGS: Readonly<Record<string, Reply>> = {
  'a previous': { body: `{"level":30,"msg":"starting"}\n${BEGIN}${line(5, { type: 'allocated', ...LEASE, owner })}` },
  a: { body: `${'x'.repeat(100_000)}\n\u0000\n{"level":30}\n` },
  'b previous': NO_PREVIOUS,
  b: {
    body: [
      line(9, { type: 'gap', reason: 'start' }),
      line(9, { type: 'state', ...LEASE, owner, state: 'held' }),
      line(9, { type: 'listed', scope: 'all' }),
      line(20, { type: 'released', ...LEASE, owner, resourceVersion: '8' }),
    ].join(''),
  },
};

describe('who had an address, as the logs of pods say', () => {
  const harness = new TransportHarness();

  /** @param logs by pod, and `previous` */
  async function holderAt(
    second: number,
    logs: Readonly<Record<string, Reply>>,
    pods: readonly object[] = [pod('a', 'ipam'), pod('b', 'ipam'), pod('c', 'webhook')],
  ) {
    const answer = ({ path, query }: SeenRequest): Reply => {
      if (path === PODS) return { body: { items: pods } };
      const name = new RegExp(`^${PODS}/(.*)/log$`).exec(path)?.[1];
      if (name === undefined) return { body: { items: [] } };
      expect(query.get('container')).to.equal('ipam');
      return logs[query.get('previous') === 'true' ? `${name} previous` : name] ?? { status: 404 };
    };
    harness.connect(answer);
    const { transport } = harness;
    const progress: string[] = [];
    const sources = await findPodLogs({ client: new Client(transport), transport }, (text) => progress.push(text));
    const at = `2030-01-01T00:00:${String(second).padStart(2, '0')}.500Z`;
    const { data } = await findPastHolder('10.0.0.5', at, sources);
    const found = data as { holders: { state: string; since: string }[]; notes: string[]; log: { skipped: number } };
    return { ...found, state: found.holders[0]?.state, progress };
  }
  const failureOf = (answer: Promise<unknown>) =>
    answer.then(
      () => '',
      (error: unknown) => String(error),
    );

  it('is read from all replicas of ipam, before and after a restart, and other lines are skipped', async () => {
    const held = await holderAt(7, LOGS);
    expect(held.holders[0]).to.include({ state: 'held', since: '2030-01-01T00:00:05.000Z' });
    expect(held.log.skipped).to.equal(4);
    expect(held.notes.filter((note) => note.startsWith('uncertain'))).to.deep.equal([]);
    expect((await holderAt(12, LOGS)).state).to.equal('held');
    expect((await holderAt(0, LOGS)).state).to.equal('unknown');
    expect((await holderAt(30, LOGS)).state).to.equal('released');
  });

  it('is read from a process with all components, and from a container that waits to start again', async () => {
    const waiting = pod('a', 'all', { waiting: { reason: 'CrashLoopBackOff' } });
    const { state, notes } = await holderAt(7, { a: LOGS['a previous']!, 'a previous': { status: 500 } }, [waiting]);
    expect(state).to.equal('held');
    expect(notes.filter((note) => note.startsWith('uncertain'))).to.deep.equal([]);
    const starting = pod('b', 'ipam', { waiting: { reason: 'ContainerCreating' } });
    const logs = { a: LOGS['a previous']!, b: NO_PREVIOUS };
    expect((await holderAt(3, logs, [waiting, starting])).notes.join()).not.to.include('uncertain');
  });

  it('is uncertain if a replica cannot be read: the answer names replica and reason', async () => {
    const { state, notes } = await holderAt(12, { ...LOGS, 'a previous': forbidden('pods/log', 'get'), a: LOGS.a! });
    expect(state).to.equal('held');
    expect(notes.join('\n')).to.include(
      'uncertain: the log of container ipam of pod holdfast-system/a could not be read: user "eve" may not get pods/log in namespace holdfast-system: ask an administrator for this right, which the ClusterRole view contains',
    );
    for (const reply of [
      { body: line(5, { type: 'alive' }), then: 'reset' } as const,
      { status: 404 },
      NO_PREVIOUS,
      { body: 'unable to retrieve container logs for containerd://1' },
    ]) {
      const broken = await holderAt(12, { ...LOGS, a: reply });
      expect(broken.state).to.equal('held');
      expect(broken.notes.join('\n')).to.include('uncertain: the log of container ipam of pod holdfast-system/a ');
    }
  });

  it('fails in words if nothing could be read, or if there is no ipam', async () => {
    const refused = forbidden('pods/log', 'get');
    const all = { a: refused, 'a previous': refused, b: refused, 'b previous': refused };
    expect(await failureOf(holderAt(7, all))).to.match(
      /^CommandError: .*pod holdfast-system\/a .*pod holdfast-system\/b /,
    );
    expect(await failureOf(holderAt(7, LOGS, [pod('c', 'webhook')]))).to.include(
      'no pod of ipam was found in the namespaces holdfast-system, holdfast-agents',
    );
    harness.connect(() => forbidden('pods', 'list'));
    const { transport } = harness;
    const found = findPodLogs({ client: new Client(transport), transport }, () => undefined);
    expect(await failureOf(found)).to.include('403 Forbidden');
  });

  it('is found in logs of many MiB, with progress', async () => {
    const noise = `${JSON.stringify({ level: 30, msg: 'x'.repeat(1_000) })}\n`.repeat(3_000);
    const body = `${noise}${BEGIN}${noise}${line(5, { type: 'allocated', ...LEASE, owner })}`;
    const { state, progress } = await holderAt(7, { ...LOGS, 'a previous': { body } });
    expect(state).to.equal('held');
    expect(progress[0]).to.equal('looking for the pods of ipam…');
    expect(progress).to.include('reading the logs of 2 pods: 5 MiB…');
  });
});
