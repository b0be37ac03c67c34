import type { ObjectMeta, OwnerReference } from '../../api/meta.js';
import { DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION, PRIMARY_CLAIM_ANNOTATION } from '../../api/names.js';
import { until } from '../../bed/processes/wait.js';
import { NAMESPACES } from '../../kube/resources.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';

const TENANT = 'tenant';
const KUBEVIRT = 'system:serviceaccount:kubevirt:kubevirt-controller';
const LAUNCHER = { 'kubevirt.io': 'virt-launcher' };
const VMI: OwnerReference = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  name: 'vm1',
  uid: 'u-1',
  controller: true,
};
const REFUSAL = 'only launcher pods of VirtualMachines may refer to IPAMClaims';

function referTo(claim: string, key = NETWORKS_ANNOTATION): Record<string, string> {
  return { [key]: JSON.stringify([{ name: 'blue', 'ipam-claim-reference': claim }]) };
}

describe('the admission policy for references to claims, on a kube-apiserver', function () {
  let cluster: PolicyCluster;

  usePolicyCluster(this, async (started) => {
    cluster = started;
    await untilDenied(() => cluster.createPod(TENANT, { annotations: referTo('vm1.data') }));
  });

  async function setNamespaceLabel(value: string | null): Promise<void> {
    const body = { metadata: { labels: { 'ipam.holdfast.dev/claim-references': value } } };
    await cluster.admin.patch(NAMESPACES, { name: 'default' }, { type: 'merge', body });
  }

  const creations: { name: string; as?: string; given: Partial<ObjectMeta>; expect?: string }[] = [
    { name: 'a pod may have networks', given: { annotations: { [NETWORKS_ANNOTATION]: 'blue, red' } } },
    { name: 'a pod may not refer to a claim', given: { annotations: referTo('vm1.data') }, expect: REFUSAL },
    {
      name: 'a pod may not refer to a claim in its default network',
      given: { annotations: referTo('vm1.data', DEFAULT_NETWORK_ANNOTATION) },
      expect: REFUSAL,
    },
    {
      name: 'a pod may not name a claim on its primary network',
      given: { annotations: { [PRIMARY_CLAIM_ANNOTATION]: 'vm1.default' } },
      expect: REFUSAL,
    },
    {
      name: 'a pod with another value of the launcher label may not refer to a claim',
      given: { annotations: referTo('vm1.data'), labels: { 'kubevirt.io': 'virt-handler' } },
      expect: REFUSAL,
    },
    {
      name: 'a pod may not refer to a claim by a key in capitals, which Multus reads too',
      given: { annotations: { [NETWORKS_ANNOTATION]: '[{"name":"blue","IPAM-Claim-Reference":"vm1.data"}]' } },
      expect: REFUSAL,
    },
    {
      name: 'a pod may not hide a reference in JSON escapes',
      given: { annotations: { [NETWORKS_ANNOTATION]: '[{"name":"blue","ipam\\u002dclaim-reference":"vm1.data"}]' } },
      expect: REFUSAL,
    },
    {
      name: 'a pod may use other JSON escapes',
      given: { annotations: { [NETWORKS_ANNOTATION]: '[{"name":"blue","cni-args":{"a":"\\u003c"}}]' } },
    },
    {
      name: 'a pod that has the launcher label but no VMI as owner may not refer to a claim',
      given: { annotations: referTo('vm1.data', DEFAULT_NETWORK_ANNOTATION), labels: LAUNCHER },
      expect: REFUSAL,
    },
    {
      name: 'a pod with the launcher label may not name a claim on its primary network if a VMI owns it but does not control it',
      // allowed by the policies for launchers
      as: KUBEVIRT,
      given: {
        annotations: { [PRIMARY_CLAIM_ANNOTATION]: 'vm1.default' },
        labels: LAUNCHER,
        ownerReferences: [{ ...VMI, controller: false }],
      },
      expect: REFUSAL,
    },
    {
      name: 'the policy does not check launchers, because the webhook does',
      as: KUBEVIRT,
      given: { annotations: referTo('vm1.data'), labels: LAUNCHER, ownerReferences: [VMI] },
    },
  ];
  for (const creation of creations) {
    it(creation.name, () => expectDenial(cluster.createPod(creation.as ?? TENANT, creation.given), creation.expect));
  }

  for (const subresource of [undefined, 'status']) {
    it(`a pod may not get a reference later by a write of ${subresource ?? 'the pod'}`, async () => {
      const pod = await cluster.createPod(TENANT, { annotations: { [NETWORKS_ANNOTATION]: 'blue' } });
      const body = { metadata: { annotations: referTo('vm1.data') } };
      await expectDenial(cluster.patchPod(TENANT, pod, body, subresource), REFUSAL);
    });
  }

  it('a pod may not get a claim on its primary network later, and is not held up by an old one', async () => {
    await setNamespaceLabel('allowed');
    const annotations = { [PRIMARY_CLAIM_ANNOTATION]: 'vm1.default' };
    const pod = await until('the label is seen', () => cluster.createPod(TENANT, { annotations }));
    await setNamespaceLabel(null);
    await untilDenied(() => cluster.createPod(TENANT, { annotations }));
    await expectDenial(cluster.patchPod(TENANT, pod, { metadata: { annotations: { note: 'mine' } } }), undefined);
    const another = { metadata: { annotations: { [PRIMARY_CLAIM_ANNOTATION]: 'vm2.default' } } };
    await expectDenial(cluster.patchPod(TENANT, pod, another), REFUSAL);
  });

  it('pods may refer to claims in a namespace that allows it, and keep the reference if the namespace no longer allows it', async () => {
    await setNamespaceLabel('allowed');
    const annotations = referTo('vm1.data');
    const pod = await until('the label is seen', () => cluster.createPod(TENANT, { annotations }));
    await setNamespaceLabel(null);
    await untilDenied(() => cluster.createPod(TENANT, { annotations }));
    const note = { metadata: { annotations: { note: 'mine' } } };
    await expectDenial(cluster.patchPod(TENANT, pod, note), undefined);
    await expectDenial(cluster.patchPod(TENANT, pod, note, 'status'), undefined);
    const another = { metadata: { annotations: referTo('vm2.data') } };
    await expectDenial(cluster.patchPod(TENANT, pod, another), REFUSAL);
  });
});
