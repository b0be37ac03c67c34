import { expect } from 'chai';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '../../kube/client.js';
import { systemClock } from '../../kube/clock.js';
import { loadCredentials } from '../../kube/transport/credentials.js';
import { isInvalid, isNotFound } from '../../kube/errors.js';
import { EVENTS, EventRecorder } from '../../kube/events.js';
import { LEASES, LeaderElection } from '../../kube/leader-election.js';
import { silentLogger } from '../../kube/log.js';
import { CONFIG_MAPS, NAMESPACES, SECRETS } from '../../kube/resources.js';
import { EMPTY_SERVER } from '../../manifests/testing/shared-server.js';
import { Transport } from '../../kube/transport/transport.js';
import { faultOf, requestErrorOf } from '../../test/request-error.js';
import type { ControlPlane } from '../../bed/control-plane/control-plane.js';
import { createAll } from '../../bed/control-plane/objects.js';
import { clusterRoleBindingOf, SERVICE_ACCOUNTS } from '../../bed/control-plane/service-accounts.js';
import { until } from '../../bed/processes/wait.js';

const NAMESPACE = 'kube-client';

/** The Kubernetes client with a real API server, without KubeVirt. */
describe('The Kubernetes client', function () {
  let plane: ControlPlane;
  let client: Client;

  EMPTY_SERVER.use(this, async (started) => {
    plane = started;
    client = plane.client;
    await client.create(NAMESPACES, { metadata: { name: NAMESPACE } });
  });

  function configMap(name: string, data: Record<string, string> = {}) {
    return { metadata: { namespace: NAMESPACE, name }, data };
  }

  it('replaces an object, patches a part of it, and lists it as new as that', async () => {
    const created = await client.create(CONFIG_MAPS, configMap('writes', { a: '1' }));
    const { metadata } = await client.replace(CONFIG_MAPS, { ...created, data: { a: '2' } });
    const patch = { type: 'strategic', body: { data: { b: '3' } } } as const;
    const { resourceVersion } = (await client.patch(CONFIG_MAPS, metadata, patch)).metadata;
    const { items } = await client.list(CONFIG_MAPS, { namespace: NAMESPACE, resourceVersion, pageSize: 1 });
    const written = items.find(({ metadata: { name } }) => name === 'writes');
    expect(written).to.deep.include({ kind: 'ConfigMap', apiVersion: 'v1', data: { a: '2', b: '3' } });
    expect(isInvalid(await requestErrorOf(client.create(CONFIG_MAPS, configMap('Bad_Name'))))).to.equal(true);
  });

  it('reads a new token when the old one is revoked', async () => {
    const account = { namespace: NAMESPACE, name: 'revoked' };
    await client.create(SERVICE_ACCOUNTS, { metadata: account });
    await createAll(client, [clusterRoleBindingOf(account, 'cluster-admin', 'kube-client-revoked')]);
    const first = await boundToken(account, 'first');
    const tokenFile = join(plane.workDir, 'token');
    await writeFile(tokenFile, first);
    const kubeconfig = join(plane.workDir, 'revoked.kubeconfig');
    await writeFile(kubeconfig, tokenFileKubeconfig(tokenFile));
    const transport = new Transport(await loadCredentials({ kubeconfig }));
    // Never requests another token.
    const ca = Buffer.from(plane.caBundle, 'base64');
    const probe = new Transport({
      server: plane.server,
      tls: () => Promise.resolve({ ca, rejectUnauthorized: true }),
      headers: () => Promise.resolve({ authorization: `Bearer ${first}` }),
      refresh: () => Promise.resolve(),
    });
    try {
      const list = { method: 'GET', path: `/api/v1/namespaces/${NAMESPACE}/configmaps`, query: { limit: 1 } };
      await until('the role to be in force', async () => Boolean(await transport.request(list)));
      const second = await boundToken(account, 'second');
      await client.delete(SECRETS, { namespace: NAMESPACE, name: 'token-first' });
      // The server caches for 10 s that a token was valid.
      await until('the token to be refused', async () => (await faultOf(probe.request(list))) === '401');
      expect(await faultOf(transport.request(list))).to.equal('401');
      await writeFile(`${tokenFile}.new`, second);
      await rename(`${tokenFile}.new`, tokenFile);
      await until('the new token to be used', async () => Boolean(await transport.request(list)));
    } finally {
      await Promise.all([transport.close(), probe.close()]);
    }
  });

  /** A token that is valid as long as its own Secret exists. */
  async function boundToken(account: { namespace: string; name: string }, name: string): Promise<string> {
    const secret = await client.create(SECRETS, { metadata: { namespace: NAMESPACE, name: `token-${name}` } });
    const { uid } = secret.metadata;
    const boundObjectRef = { apiVersion: 'v1', kind: 'Secret', name: secret.metadata.name, uid };
    const answer = await client.createSubresource(SERVICE_ACCOUNTS, account, 'token', { spec: { boundObjectRef } });
    return (answer as { status: { token: string } }).status.token;
  }

  function tokenFileKubeconfig(tokenFile: string): string {
    const cluster = { server: plane.server, 'certificate-authority-data': plane.caBundle };
    return JSON.stringify({
      clusters: [{ name: 'bed', cluster }],
      users: [{ name: 'account', user: { tokenFile } }],
      contexts: [{ name: 'bed', context: { cluster: 'bed', user: 'account' } }],
      'current-context': 'bed',
    });
  }

  it('hands leadership over through a Lease', async () => {
    const [first, second] = ['a', 'b'].map(
      (identity) =>
        new LeaderElection({
          client,
          namespace: NAMESPACE,
          name: 'leader',
          identity,
          retryPeriodMs: 200,
          // so long that no candidate waits for the end of the lease
          renewDeadlineMs: 590_000,
          leaseDurationMs: 600_000,
          clock: systemClock,
          random: Math.random,
          log: silentLogger,
        }),
    );
    const callbacks = { onStarted: () => undefined, onStopped: () => undefined };
    const running = [first!.run(callbacks)];
    await until('the first to lead', () => first!.isLeader);
    running.push(second!.run(callbacks));
    await first!.stop();
    await until('the second to lead', () => second!.isLeader);
    const lease = await client.get(LEASES, { namespace: NAMESPACE, name: 'leader' });
    expect(lease.spec).to.include({ holderIdentity: 'b', leaseTransitions: 1 });
    await second!.stop();
    await Promise.all(running);
  });

  it('writes valid events, and increments the count of repeated ones', async () => {
    let laterMs = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + laterMs };
    const recorder = new EventRecorder({ client, component: 'test', clock, log: silentLogger });
    const subject = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: NAMESPACE, name: 'subject', uid: 'u1' },
    };
    const wide = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-subject', uid: 'u2' } };
    recorder.event(subject, 'Warning', 'Tested', 'a message');
    recorder.event(wide, 'Normal', 'Tested', 'ä'.repeat(2000));
    await recorder.flush();
    laterMs = 5 * 60_000;
    recorder.event(subject, 'Warning', 'Tested', 'a message');
    await recorder.flush();
    const fieldSelector = 'involvedObject.uid=u1';
    const { items } = await client.list(EVENTS, { namespace: NAMESPACE, fieldSelector });
    expect(items.map(({ count, reason, message }) => ({ count, reason, message }))).to.deep.equal([
      { count: 2, reason: 'Tested', message: 'a message' },
    ]);
    const clusterWide = await client.list(EVENTS, { namespace: 'default', fieldSelector: 'involvedObject.uid=u2' });
    expect(clusterWide.items).to.have.length(1);
  });

  it('times out if the server hangs, and works again afterwards', async () => {
    const ref = { namespace: NAMESPACE, name: 'hangs' };
    await client.create(CONFIG_MAPS, configMap('hangs'));
    await plane.apiServer.pause();
    try {
      expect(await faultOf(client.get(CONFIG_MAPS, ref, { deadlineMs: 300 }))).to.equal('deadline');
    } finally {
      plane.apiServer.resume();
    }
    expect((await client.get(CONFIG_MAPS, ref)).metadata.name).to.equal('hangs');
    expect(isNotFound(await requestErrorOf(client.get(CONFIG_MAPS, { ...ref, name: 'absent' })))).to.equal(true);
  });
});
