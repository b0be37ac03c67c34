import { join } from 'node:path';
import { expect } from 'chai';
import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import { PoolDirectory } from '../../addressing/directory/directory.js';
import type { PoolLease } from '../../ipam/validation/review.js';
import { createValidationWebhook } from '../../ipam/validation/webhook.js';
import type { Client } from '../../kube/client.js';
import {
  ADDRESS_POOLS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  SECRETS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../../kube/resources.js';
import { nadRightsFrom } from '../../api/networks/nad-rights.js';
import { IPAM_SETTINGS, type IpamConfig } from '../../process/config/config.js';
import type { Component, ProcessContext } from '../../process/context.js';
import { ADDRESS_POOL_WATCH, NAD_WATCH } from '../../cluster/watch-specs.js';
import { EMPTY_SERVER } from '../../manifests/testing/shared-server.js';
import { faultOf, requestErrorOf } from '../../test/request-error.js';
import { holdfastConfig } from '../../test/objects/pool-objects.js';
import { poolLeaseOf } from '../../ipam/validation/testing/validation-view.js';
import type { ControlPlane } from '../../bed/control-plane/control-plane.js';
import { createCrds } from '../../bed/control-plane/crds.js';
import { readManifests, resourceOf } from '../../bed/control-plane/objects.js';
import { findFreePorts } from '../../bed/processes/ports.js';
import { until } from '../../bed/processes/wait.js';
import { endpointOf, withoutSelector } from '../../bed/holdfast/install.js';
import { type RunningComponent, startComponent, stopComponent } from './running-component.js';

const MANIFESTS = join(import.meta.dirname, '..', '..', 'manifests');
const SYSTEM = 'holdfast-system';
const NAME = 'holdfast-ipam';
const TENANT = 'vms';

describe('The validation of pools and networks with a real API server', function () {
  let plane: ControlPlane;
  let port: number;
  let running: RunningComponent;
  /** The leases in use, in place of the real ones. */
  let leases: PoolLease[];

  EMPTY_SERVER.use(this, async (started) => {
    plane = started;
    [port = 0] = await findFreePorts(1);
    await createCrds(plane.client, await readManifests(join(MANIFESTS, 'crds', 'addresspools.yaml')));
    await install();
    running = await start();
    await until('the webhook is asked', async () => (await faultOf(dryRun({ subnets: overlapping }))) === '400');
  });

  after(() => stopComponent(running));

  beforeEach(() => {
    leases = [];
  });

  const overlapping = [{ cidr: '10.0.0.0/24' }, { cidr: '10.0.0.0/25' }];

  async function install(): Promise<void> {
    const files = [
      'base/claims/namespace.yaml',
      'base/ipam/rbac/ipam.yaml',
      'base/claims/rbac/policies.yaml',
      'base/ipam/secret.yaml',
      'base/ipam/service.yaml',
      'base/ipam/validating-webhook.yaml',
    ];
    const shipped = (await Promise.all(files.map((file) => readManifests(join(MANIFESTS, file))))).flat();
    for (const object of [...shipped.map(withoutSelector), endpointOf(NAME, port)])
      await plane.client.create(resourceOf(object), object);
    await plane.client.create(NAMESPACES, { metadata: { name: TENANT } });
  }

  /** With the shipped identity of ipam. */
  function start(): Promise<RunningComponent> {
    const changes = { validationBindAddress: `127.0.0.1:${port}` };
    return startComponent<IpamConfig>(plane, { process: 'ipam', settings: IPAM_SETTINGS, changes, create });
  }

  function create(context: ProcessContext, config: IpamConfig): Component {
    const [pools, networks] = [context.informers.get(ADDRESS_POOL_WATCH), context.informers.get(NAD_WATCH)];
    const directory = new PoolDirectory({ pools: pools.cache, networks: networks.cache });
    for (const informer of [pools, networks]) informer.onChange(() => directory.changed());
    const book = { ofPool: (name: string) => (name === 'blue' ? leases : []) };
    const rightsOf = nadRightsFrom(config);
    return createValidationWebhook(context, config, {
      leases: book,
      pools: pools.cache,
      networks: directory,
      rightsOf,
    });
  }

  const pool = (spec: Partial<AddressPoolSpec>, name = 'blue'): AddressPool => ({
    metadata: { name },
    spec: { network: name, subnets: [{ cidr: '10.0.0.0/24' }], ...spec },
  });

  const dryRun = (spec: Partial<AddressPoolSpec>) => plane.client.create(ADDRESS_POOLS, pool(spec), { dryRun: true });

  const patch = (body: object, client: Client = plane.client) =>
    client.patch(ADDRESS_POOLS, { name: 'blue' }, { type: 'merge', body });

  function createNad(name: string, config: unknown): Promise<NetworkAttachmentDefinition> {
    const text = typeof config === 'string' ? config : JSON.stringify(config);
    const metadata = { name, namespace: TENANT };
    return plane.client.create(NETWORK_ATTACHMENT_DEFINITIONS, { metadata, spec: { config: text } });
  }

  it('creates its certificate and sets the caBundle of both webhooks, with only its shipped rights', async () => {
    const secret = await plane.client.get(SECRETS, { namespace: SYSTEM, name: `${NAME}-tls` });
    const { webhooks = [] } = await plane.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, { name: NAME });
    const ca = secret.data?.['ca.crt'];
    expect(ca).to.be.a('string');
    expect(webhooks.map(({ clientConfig }) => clientConfig.caBundle)).to.deep.equal([ca, ca]);
  });

  it('rejects an invalid pool, also in a dry run, and says what to do', async () => {
    for (const attempt of [dryRun, (spec: object) => plane.client.create(ADDRESS_POOLS, pool(spec))]) {
      const { message } = await requestErrorOf(attempt({ subnets: overlapping }));
      expect(message).to.include('pools.ipam.holdfast.dev').and.to.include('AddressPool blue: spec.subnets[');
    }
  });

  it('rejects the deletion of a pool with leases, and admits it without leases', async () => {
    await plane.client.create(ADDRESS_POOLS, pool({}));
    leases = [poolLeaseOf('10.0.0.200')];
    const subnets = [{ cidr: '10.0.0.0/25' }];
    expect((await requestErrorOf(patch({ spec: { subnets } }))).message).to.include(
      '10.0.0.200 (IPAMClaim vms/vm1.data)',
    );
    const deletion = () => plane.client.delete(ADDRESS_POOLS, { name: 'blue' });
    expect((await requestErrorOf(deletion())).message).to.include('it has 1 leased address: 10.0.0.200');
    await patch({ metadata: { labels: { some: 'label' } } });
    leases = [];
    await patch({ spec: { subnets } });
    await deletion();
  });

  it('does not apply to requests of ipam itself', async () => {
    await plane.client.create(ADDRESS_POOLS, pool({}));
    leases = [poolLeaseOf('10.0.0.200')];
    await patch({ spec: { subnets: [{ cidr: '10.0.0.0/25' }] } }, running.context.client);
    await running.context.client.delete(ADDRESS_POOLS, { name: 'blue' });
  });

  it('rejects networks that delegate to Holdfast and are invalid or contradict each other', async () => {
    const wrong = await requestErrorOf(createNad('wrong', holdfastConfig({ subnets: [{ cidr: '10.0.0.1/24' }] })));
    expect(wrong.message)
      .to.include('network-attachment-definitions.ipam.holdfast.dev')
      .and.to.include('spec.config.ipam.subnets[0].cidr');
    const misspelled = { name: 'blue', type: 'bridge', ipam: { type: 'HoldFast' } };
    expect((await requestErrorOf(createNad('wrong', misspelled))).message).to.include('write "holdfast"');
    await createNad('first', holdfastConfig({ subnets: [{ cidr: '10.0.0.0/24' }] }));
    const second = () => createNad('second', holdfastConfig({ subnets: [{ cidr: '10.1.0.0/24' }] }));
    // when the first one is known
    await until('the second is refused', async () => {
      const refusal = await second().catch((error: unknown) => error);
      if (refusal instanceof Error) return refusal.message.includes(`${TENANT}/first is older`);
      await plane.client.delete(NETWORK_ATTACHMENT_DEFINITIONS, { namespace: TENANT, name: 'second' });
      return false;
    });
  });

  it('is not called for networks with other plugins or for changes of labels', async () => {
    await createNad('mine', holdfastConfig({ subnets: [{ cidr: '10.2.0.0/24' }] }, 'green'));
    await plane.client.create(ADDRESS_POOLS, pool({}, 'red'));
    await stopComponent(running);
    try {
      await createNad('theirs', { name: 'holdfast', type: 'bridge', ipam: { type: 'host-local' } });
      await createNad('odd', '');
      await plane.client.create(NETWORK_ATTACHMENT_DEFINITIONS, { metadata: { name: 'bare', namespace: TENANT } });
      const labels = { metadata: { labels: { some: 'label' } } };
      const ref = { namespace: TENANT, name: 'mine' };
      await plane.client.patch(NETWORK_ATTACHMENT_DEFINITIONS, ref, { type: 'merge', body: labels });
      await plane.client.patch(ADDRESS_POOLS, { name: 'red' }, { type: 'merge', body: labels });
      // an invalid network is reported later, but a deleted pool loses addresses
      await createNad('late', holdfastConfig({ subnets: [{ cidr: '10.3.0.1/24' }] }, 'late'));
      const deletion = plane.client.delete(ADDRESS_POOLS, { name: 'red' });
      expect((await requestErrorOf(deletion)).message).to.include('failed calling webhook');
    } finally {
      running = await start();
    }
    await plane.client.delete(ADDRESS_POOLS, { name: 'red' });
  });
});
