import { join } from 'node:path';
import { expect } from 'chai';
import { CLAIM_NAD, SERVED_NETWORKS_CONFIG_MAP } from '../../api/names.js';
import { type Manifest, createAll, readManifests } from '../../bed/control-plane/objects.js';
import { until } from '../../bed/processes/wait.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';
import { CONFIG_MAPS, IPAM_CLAIMS } from '../../kube/resources.js';
import { grantClaims } from '../testing/claim-grant.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';

const IPAM = 'system:serviceaccount:holdfast-system:holdfast-ipam';
const OTHER_IPAM = 'system:serviceaccount:ovn-kubernetes:ovnkube-cluster-manager';
const REF = { namespace: 'holdfast-system', name: SERVED_NETWORKS_CONFIG_MAP };

describe('the list of networks that decides who writes the status of claims, on a kube-apiserver', function () {
  let cluster: PolicyCluster;
  let count = 0;

  usePolicyCluster(this, async (started) => {
    cluster = started;
    const { role, everywhere } = grantClaims('status-writers', [OTHER_IPAM], ['ipamclaims/status']);
    await createAll(cluster.admin, [role, everywhere]);
    await until('the role is in force', () => write(OTHER_IPAM, 'free'));
  });

  async function list(data: Record<string, string | null>): Promise<void> {
    await cluster.admin.patch(CONFIG_MAPS, REF, { type: 'merge', body: { data } });
  }

  async function write(user: string, network: string, nad = 'default/n'): Promise<unknown> {
    const metadata = { namespace: 'default', name: `claim-${++count}`, annotations: { [CLAIM_NAD]: nad } };
    await cluster.admin.create(IPAM_CLAIMS, { metadata, spec: { network, interface: 'net1' } });
    const patch = { type: 'merge', body: { status: { ips: ['10.0.0.5/24'] } } } as const;
    return (await cluster.asRestricted(user)).patch(IPAM_CLAIMS, metadata, patch, { subresource: 'status' });
  }

  it('is one object, however many pools there are', async () => {
    const manifests = await readManifests(join(MANIFESTS, 'base', 'ipam', 'policies', 'pool-claim-status.yaml'));
    const [policy, binding] = manifests as (Manifest & { spec: { paramKind?: object; paramRef?: object } })[];
    expect(policy?.spec.paramKind).to.deep.equal({ apiVersion: 'v1', kind: 'ConfigMap' });
    expect(binding?.spec.paramRef).to.deep.equal({ ...REF, parameterNotFoundAction: 'Deny' });
  });

  it('lets only Holdfast write the status until ipam has written it for the first time', async () => {
    await list({ complete: null });
    await untilDenied(() => write(OTHER_IPAM, 'free'));
    const words =
      'has not listed the networks of AddressPools in the ConfigMap holdfast-system/holdfast-served-networks';
    await expectDenial(write(OTHER_IPAM, 'free'), words);
    await expectDenial(write(IPAM, 'free'), undefined);
    await cluster.listNetworks();
    await until('the networks are listed', () => write(OTHER_IPAM, 'free'));
  });

  it('protects all networks of a namespace whose pools are too many', async () => {
    await list({ 'namespace.crowded': '*' });
    await untilDenied(() => write(OTHER_IPAM, 'free', 'crowded/n'));
    await expectDenial(write(OTHER_IPAM, 'free', 'crowded/n'), 'AddressPool free.crowded serves the network free');
    await expectDenial(write(OTHER_IPAM, 'free', 'other/n'), undefined);
  });

  it('lets Holdfast write also where more pools serve a network than the API server lets a policy check', async () => {
    await list({ 'network.busy': ['p1', 'p2', 'p3', 'p4'].map((name) => `busy/${name}/ *`).join('\n') });
    await untilDenied(() => write(OTHER_IPAM, 'busy'));
    await expectDenial(write(IPAM, 'busy'), undefined);
  });

  it('finds networks that share the beginning of a key by their whole names', async () => {
    const [network, sibling] = ['a', 'b'].map((end) => `${'n'.repeat(250)}${end}`) as [string, string];
    await list({ [`network.${'n'.repeat(200)}`]: `${network}/long/ elsewhere default` });
    await untilDenied(() => write(OTHER_IPAM, network));
    await expectDenial(write(OTHER_IPAM, sibling), undefined);
  });
});
