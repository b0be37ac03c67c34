import type { ObjectMeta } from '../../api/meta.js';
import { LAUNCHER_CREATOR, NETWORKS_ANNOTATION, NETWORK_STATUS_ANNOTATION } from '../../api/names.js';
import { until } from '../../bed/processes/wait.js';
import { CONFIG_MAPS } from '../../kube/resources.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';
import { LAUNCHER_LABELS as LAUNCHER, VMI_OWNER as VMI } from '../../test/objects/launcher-pods.js';

const WHO = {
  tenant: 'system:serviceaccount:vms:default',
  kubevirt: 'system:serviceaccount:kubevirt:kubevirt-controller',
  elsewhere: 'system:serviceaccount:openshift-cnv:kubevirt-controller',
} as const;
type Person = keyof typeof WHO;

const MULTUS = 'system:serviceaccount:kube-system:multus';
const REF = { namespace: 'holdfast-system', name: 'holdfast-policies' };
const ONLY = 'only KubeVirt';
const FIXED = 'names the user who created the pod';

/** A launcher with networks by default. @param creator value of its annotation */
function launcher(creator?: string, hasNetworks = true): Partial<ObjectMeta> {
  const annotations = {
    ...(hasNetworks && { [NETWORKS_ANNOTATION]: 'blue' }),
    ...(creator !== undefined && { [LAUNCHER_CREATOR]: creator }),
  };
  return { labels: LAUNCHER, ownerReferences: [VMI], annotations };
}

const REFERENCE = '[{"name":"blue","ipam-claim-reference":"vm1.data"}]';

function networks(value: string | null, creator?: string): { metadata: Partial<ObjectMeta> } {
  const annotations = { [NETWORKS_ANNOTATION]: value, ...(creator !== undefined && { [LAUNCHER_CREATOR]: creator }) };
  return { metadata: { annotations: annotations as Record<string, string> } };
}

describe('the admission policies for the creator of a launcher, on a kube-apiserver', function () {
  let cluster: PolicyCluster;

  usePolicyCluster(this, async (started) => {
    cluster = started;
    await untilDenied(() => cluster.createPod(WHO.tenant, launcher()));
    await untilDenied(() => cluster.createPod(WHO.elsewhere, launcher()));
    await untilDenied(() => cluster.createPod(WHO.tenant, { annotations: { [LAUNCHER_CREATOR]: 'x' } }));
    await untilDenied(bindWithCreator);
  });

  async function bindWithCreator(): Promise<void> {
    const pod = await cluster.createPod(WHO.tenant, {});
    await cluster.bindPod(WHO.tenant, pod, { annotations: { [LAUNCHER_CREATOR]: 'x' } });
  }

  async function setNamespace(value: string | null): Promise<void> {
    const body = { data: { kubevirtNamespace: value } };
    await cluster.admin.patch(CONFIG_MAPS, REF, { type: 'merge', body });
  }

  interface State {
    name: string;
    set: () => Promise<unknown>;
    /** Creates an unmarked launcher only while the state is in force. */
    settled: () => Promise<unknown>;
    /** Creates launchers with networks without the mark. */
    unmarked: Record<Exclude<Person, 'tenant'>, boolean>;
    isMissing?: boolean;
  }
  const refusedTo = (person: Person) => () => untilDenied(() => cluster.createPod(WHO[person], launcher()));
  const allowedTo = (person: Person) => () =>
    until('the parameters are seen', () => cluster.createPod(WHO[person], launcher()));
  const states: State[] = [
    {
      name: 'right',
      set: () => setNamespace('kubevirt'),
      settled: refusedTo('elsewhere'),
      unmarked: { kubevirt: true, elsewhere: false },
    },
    {
      name: 'set to another namespace',
      set: () => setNamespace('openshift-cnv'),
      settled: refusedTo('kubevirt'),
      unmarked: { kubevirt: false, elsewhere: true },
    },
    {
      name: 'empty',
      set: () => setNamespace(''),
      settled: refusedTo('elsewhere'),
      unmarked: { kubevirt: false, elsewhere: false },
    },
    {
      name: 'absent',
      set: () => setNamespace(null),
      settled: refusedTo('elsewhere'),
      unmarked: { kubevirt: false, elsewhere: false },
    },
    {
      name: 'missing with its ConfigMap',
      set: () => cluster.admin.delete(CONFIG_MAPS, REF),
      settled: allowedTo('elsewhere'),
      unmarked: { kubevirt: true, elsewhere: true },
      isMissing: true,
    },
  ];
  for (const state of states) {
    describe(`while kubevirtNamespace is ${state.name}`, () => {
      before(async () => {
        await state.set();
        await state.settled();
      });

      for (const person of ['kubevirt', 'elsewhere'] as const) {
        it(`admit launchers that ${WHO[person]} creates, if the annotation names it or they have no networks`, async () => {
          await cluster.createPod(WHO[person], launcher(WHO[person]));
          await cluster.createPod(WHO[person], launcher(undefined, false));
        });

        const isAdmitted = state.unmarked[person];
        it(`${isAdmitted ? 'admit' : 'deny'} launchers that ${WHO[person]} creates without the annotation`, () =>
          expectDenial(cluster.createPod(WHO[person], launcher()), isAdmitted ? undefined : ONLY));
      }

      it('deny launchers that a tenant creates, with any annotation', async () => {
        for (const creator of [undefined, WHO.tenant, WHO.kubevirt]) {
          await expectDenial(cluster.createPod(WHO.tenant, launcher(creator)), ONLY);
          await expectDenial(cluster.createPod(WHO.tenant, launcher(creator, false)), ONLY);
        }
      });

      it('deny an annotation that names another user', () =>
        expectDenial(cluster.createPod(WHO.elsewhere, launcher(WHO.kubevirt, false)), FIXED));

      it('deny changes of the creator by writes of the pod and of its status', async () => {
        const pod = await cluster.createPod(WHO.elsewhere, launcher(WHO.elsewhere));
        for (const value of [null, '', WHO.kubevirt, WHO.tenant]) {
          const body = { metadata: { annotations: { [LAUNCHER_CREATOR]: value } } };
          for (const person of ['tenant', 'kubevirt', 'elsewhere'] as const) {
            await expectDenial(cluster.patchPod(WHO[person], pod, body), FIXED);
            await expectDenial(cluster.patchPod(WHO[person], pod, body, 'status'), FIXED);
          }
        }
      });

      it('deny every user to make a VMI the owner of an existing pod', async () => {
        const pod = await cluster.createPod(WHO.tenant, { labels: LAUNCHER });
        for (const person of ['tenant', 'kubevirt', 'elsewhere'] as const) {
          const body = { metadata: { ownerReferences: [VMI] } };
          await expectDenial(cluster.patchPod(WHO[person], pod, body), ONLY);
        }
      });

      it('accept as creator the user who sets the first networks of a launcher', async () => {
        const pod = await cluster.createPod(WHO.elsewhere, launcher(undefined, false));
        // of either policy, whichever the API server names first
        await expectDenial(cluster.patchPod(WHO.tenant, pod, networks('blue', WHO.kubevirt)), 'holdfast-launcher-');
        await expectDenial(cluster.patchPod(WHO.tenant, pod, networks('blue', WHO.tenant)), undefined);
      });

      for (const person of ['tenant', 'kubevirt', 'elsewhere'] as const) {
        const mayGive = person === 'tenant' ? state.isMissing === true : state.unmarked[person];
        it(`${mayGive ? 'allow' : 'deny'} ${WHO[person]} to set the first networks of a launcher without the annotation`, async () => {
          const pod = await cluster.createPod(WHO.elsewhere, launcher(undefined, false));
          const refusal = mayGive ? undefined : 'sets the first networks of a launcher';
          await expectDenial(cluster.patchPod(WHO[person], pod, networks('blue')), refusal);
          if (mayGive) await expectDenial(cluster.patchPod(WHO.tenant, pod, networks('blue', WHO.tenant)), FIXED);
        });
      }

      it('allow only launchers of KubeVirt to refer to claims', async () => {
        const refusal = state.unmarked.elsewhere ? undefined : 'only launchers that KubeVirt';
        const created = await cluster.createPod(WHO.elsewhere, launcher(WHO.elsewhere));
        await expectDenial(cluster.patchPod(WHO.elsewhere, created, networks(REFERENCE)), refusal);
        const { metadata } = networks(REFERENCE, WHO.elsewhere);
        await expectDenial(cluster.createPod(WHO.elsewhere, { ...launcher(), ...metadata }), refusal);
      });

      it('deny to remove all networks of a launcher, because it would no longer count as a user of a claim', async () => {
        const pod = await cluster.createPod(WHO.elsewhere, launcher(WHO.elsewhere));
        for (const person of ['tenant', 'kubevirt', 'elsewhere'] as const) {
          await expectDenial(cluster.patchPod(WHO[person], pod, networks(null)), 'cannot all be removed');
        }
        await expectDenial(cluster.patchPod(WHO.kubevirt, pod, networks('')), undefined);
      });

      it('deny to change what Multus reports of a launcher, because its claim would be released while it is in use', async () => {
        const pod = await cluster.createPod(WHO.elsewhere, launcher(WHO.elsewhere));
        const report = (value: string | null) => ({
          metadata: { annotations: { [NETWORK_STATUS_ANNOTATION]: value } },
        });
        await expectDenial(cluster.patchPod(MULTUS, pod, report('[{"name":"vms/blue"}]'), 'status'), undefined);
        for (const value of [null, '', '[]']) {
          await expectDenial(cluster.patchPod(WHO.tenant, pod, report(value)), 'only Multus writes');
        }
        await expectDenial(cluster.patchPod(WHO.tenant, pod, { metadata: { labels: { some: 'label' } } }), undefined);
      });
    });
  }

  it('deny a creator in a binding', () => expectDenial(bindWithCreator(), 'the recorded creator of a pod'));
});
