import {
  DEFAULT_NETWORK_ANNOTATION,
  NETWORKS_ANNOTATION,
  NETWORK_STATUS_ANNOTATION,
  PRIMARY_CLAIM_ANNOTATION,
} from '../../api/names.js';
import type { ObjectMeta } from '../../api/meta.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';
import { LAUNCHER_LABELS as LAUNCHER, VMI_OWNER as VMI } from '../../test/objects/launcher-pods.js';

const WHO = {
  tenant: 'tenant',
  multus: 'system:serviceaccount:kube-system:multus',
  scheduler: 'system:kube-scheduler',
  kubevirt: 'system:serviceaccount:kubevirt:kubevirt-controller',
} as const;
type Person = keyof typeof WHO;

describe('the admission policies for writes of subresources of pods, on a kube-apiserver', function () {
  let cluster: PolicyCluster;
  const launcher = { labels: LAUNCHER, ownerReferences: [VMI] };

  usePolicyCluster(this, async (started) => {
    cluster = started;
    const launch = () => cluster.createPod(WHO.kubevirt, launcher);
    const metadata = { annotations: { [NETWORKS_ANNOTATION]: 'blue' } };
    await untilDenied(async () => cluster.patchPod(WHO.tenant, await launch(), { metadata }, 'status'));
    await untilDenied(async () => cluster.bindPod(WHO.tenant, await launch(), metadata));
  });

  describe('for the status of a pod', () => {
    const networks = { [NETWORKS_ANNOTATION]: 'blue', [DEFAULT_NETWORK_ANNOTATION]: 'red' };
    const given = { ...launcher, annotations: networks };
    interface Write {
      name: string;
      /** Default: a plain pod. */
      from?: Partial<ObjectMeta>;
      as: Person;
      to: object;
      /** Words of the refusal; none: allowed. */
      expect?: string;
    }
    const writes: Write[] = [
      {
        name: 'Multus writes the network status of a launcher',
        from: given,
        as: 'multus',
        to: { annotations: { [NETWORK_STATUS_ANNOTATION]: '[]' } },
      },
      {
        name: 'a tenant cannot remove the label',
        from: given,
        as: 'tenant',
        to: { labels: null },
        expect: 'keep the label',
      },
      {
        name: 'a tenant cannot add the label to an ordinary pod',
        as: 'tenant',
        to: { labels: LAUNCHER },
        expect: 'an existing pod may get the label',
      },
      {
        name: 'KubeVirt cannot change the networks of a launcher',
        from: given,
        as: 'kubevirt',
        to: { annotations: { [NETWORKS_ANNOTATION]: 'green' } },
        expect: 'the networks of a launcher',
      },
      {
        name: 'a tenant cannot remove the networks of a launcher',
        from: given,
        as: 'tenant',
        to: { annotations: { [NETWORKS_ANNOTATION]: null } },
        expect: 'the networks of a launcher',
      },
      {
        name: 'a tenant cannot add networks to a launcher',
        from: launcher,
        as: 'tenant',
        to: { annotations: { [NETWORKS_ANNOTATION]: 'green' } },
        expect: 'the networks of a launcher',
      },
      {
        name: 'a tenant cannot change the default network of a launcher',
        from: given,
        as: 'tenant',
        to: { annotations: { [DEFAULT_NETWORK_ANNOTATION]: 'green' } },
        expect: 'the networks of a launcher',
      },
      {
        name: 'a tenant cannot name the claim of a launcher on its primary network',
        from: given,
        as: 'tenant',
        to: { annotations: { [PRIMARY_CLAIM_ANNOTATION]: 'vm2.default' } },
        expect: 'the networks of a launcher',
      },
      { name: 'a tenant changes the networks of other pods', as: 'tenant', to: { annotations: networks } },
    ];
    for (const write of writes) {
      it(write.name, async () => {
        const pod = await cluster.createPod(WHO.kubevirt, write.from ?? {});
        const body = { metadata: write.to, status: { message: 'runs' } };
        await expectDenial(cluster.patchPod(WHO[write.as], pod, body, 'status'), write.expect);
      });
    }
  });

  describe('for the binding of a pod to a node', () => {
    const bindings: { name: string; as: Person; given: Partial<ObjectMeta>; expect?: string }[] = [
      { name: 'the scheduler binds a pod', as: 'scheduler', given: {} },
      {
        name: 'the scheduler binds a pod with annotations and labels of its own',
        as: 'scheduler',
        given: { annotations: { note: 'a' }, labels: { 'topology.kubernetes.io/zone': 'z' } },
      },
      {
        name: 'the scheduler cannot add networks',
        as: 'scheduler',
        given: { annotations: { [NETWORKS_ANNOTATION]: 'blue' } },
        expect: 'a binding does not change the networks',
      },
      {
        name: 'a tenant cannot set the default network',
        as: 'tenant',
        given: { annotations: { [DEFAULT_NETWORK_ANNOTATION]: 'blue' } },
        expect: 'a binding does not change the networks',
      },
      {
        name: 'a tenant cannot name a claim on the primary network',
        as: 'tenant',
        given: { annotations: { [PRIMARY_CLAIM_ANNOTATION]: 'vm2.default' } },
        expect: 'a binding does not change the networks',
      },
      { name: 'tenants set no label', as: 'tenant', given: { labels: LAUNCHER }, expect: 'does not change the label' },
    ];
    for (const binding of bindings) {
      it(binding.name, async () => {
        const user = WHO[binding.as];
        const pods = await Promise.all([0, 1].map(() => cluster.createPod(WHO.kubevirt, launcher)));
        await expectDenial(cluster.bindPod(user, pods[0]!, binding.given), binding.expect);
        await expectDenial(cluster.bindPodWithoutSubresource(user, pods[1]!, binding.given), binding.expect);
      });
    }
  });
});
