import { expect } from 'chai';
import { RESPONDERS_NAMESPACE, RESPONDER_INDEX } from '../../api/names.js';
import { indexNames } from '../../guest/responder-tables/published-index.js';
import type { Client } from '../../kube/client.js';
import { isForbidden } from '../../kube/errors.js';
import type { Resource } from '../../kube/resource.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  CONFIG_MAPS,
  IPAM_CLAIMS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kube/resources.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';

const TABLE = 'holdfast-responder-0123abcd';
/** The largest value of --max-responder-pools. */
const MAX_POOLS = 5_000;
const FORGED = 'only holdfast-guest of the namespace of Holdfast writes ConfigMap';

describe('the admission policy for tables of responders, on a kube-apiserver', function () {
  let admin: Client;
  /** Clients with the shipped rights. */
  let guest: Client;
  let responder: Client;
  /** Has all rights by RBAC. */
  let other: Client;
  let impostor: Client;

  usePolicyCluster(this, async (cluster: PolicyCluster) => {
    ({ admin } = cluster);
    guest = await cluster.withToken({ namespace: 'holdfast-system', name: 'holdfast-guest' });
    responder = await cluster.withToken({ namespace: RESPONDERS_NAMESPACE, name: 'holdfast-responder' });
    other = await cluster.as('system:serviceaccount:vms:operator');
    impostor = await cluster.as('system:serviceaccount:vms:holdfast-guest');
    await untilDenied(() => write(other, TABLE));
  });

  const write = (client: Client, name: string, namespace = RESPONDERS_NAMESPACE) =>
    client.create(CONFIG_MAPS, { metadata: { namespace, name }, data: { version: 'x' } }, { dryRun: true });

  for (const name of [TABLE, RESPONDER_INDEX, indexNames(MAX_POOLS).at(-1)!]) {
    it(`lets guest write ${name}, and nobody else`, async () => {
      const { metadata } = await guest.create(CONFIG_MAPS, { metadata: { namespace: RESPONDERS_NAMESPACE, name } });
      const data = { version: 'forged' };
      await guest.replace(CONFIG_MAPS, { metadata, data }, { dryRun: true });
      for (const client of [other, impostor, admin])
        await expectDenial(client.replace(CONFIG_MAPS, { metadata, data }, { dryRun: true }), FORGED);
      await guest.delete(CONFIG_MAPS, { namespace: RESPONDERS_NAMESPACE, name });
      for (const client of [other, impostor, admin]) await expectDenial(write(client, name), FORGED);
    });
  }

  it('lets guest write no other ConfigMap', async () => {
    const others = [
      'kube-root-ca.crt',
      `${TABLE}-0`,
      TABLE.slice(0, -1),
      `${RESPONDER_INDEX}-a`,
      `${RESPONDER_INDEX}-100`,
    ];
    for (const name of others) await expectDenial(write(guest, name), 'writes only the tables of responders');
  });

  it('does not concern ConfigMaps of other names and namespaces', async () => {
    await write(other, 'other');
    await write(other, TABLE, 'default');
  });

  it('lets a responder read tables, and no claim, VMI, NAD, lease or pool', async () => {
    await responder.list(CONFIG_MAPS, { namespace: RESPONDERS_NAMESPACE });
    const others: readonly Resource[] = [
      IPAM_CLAIMS,
      VIRTUAL_MACHINE_INSTANCES,
      NETWORK_ATTACHMENT_DEFINITIONS,
      ADDRESS_LEASES,
      ADDRESS_POOLS,
    ];
    const refused = [
      () => write(responder, TABLE),
      () => responder.list(CONFIG_MAPS, { namespace: 'holdfast-system' }),
      ...others.map((resource) => () => responder.list(resource)),
    ];
    for (const attempt of refused) {
      const error: unknown = await attempt().catch((reason: unknown) => reason);
      expect(isForbidden(error)).to.equal(true);
    }
  });
});
