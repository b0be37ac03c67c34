import { expect } from 'chai';
import type { KubeVirt } from '../api/kubevirt.js';
import type { ObjectMeta } from '../api/meta.js';
import { LAUNCHER_CREATOR, NETWORKS_ANNOTATION } from '../api/names.js';
import { Cache } from '../kube/informers/cache.js';
import { VMI_OWNER } from '../test/objects/launcher-pods.js';
import {
  type PoliciesConfigMap,
  describeUntrustedCreator,
  findKubeVirtController,
  watchKubeVirt,
  vmiOfTrustedLauncher,
} from './kubevirt-controller.js';
import type { WatchSpec } from '../kube/informers/informers.js';
import { KUBEVIRT_WATCH } from './watch-specs.js';

const KEY = 'holdfast-system/holdfast-policies';
const CONTROLLER = 'system:serviceaccount:kubevirt:kubevirt-controller';
const TENANT = 'system:serviceaccount:vms:kubevirt-controller';

/** @param age the higher, the younger */
function kubevirt(namespace: string, age = 0): KubeVirt {
  return { metadata: { name: 'kubevirt', namespace, creationTimestamp: `2026-01-01T00:00:0${age}Z` } };
}

function policies(kubevirtNamespace?: string): PoliciesConfigMap {
  const data: Record<string, string> = kubevirtNamespace === undefined ? {} : { kubevirtNamespace };
  return { metadata: { name: 'holdfast-policies', namespace: 'holdfast-system' }, data };
}

describe('the user who creates launchers', () => {
  const rows: { name: string; kubevirts: KubeVirt[]; policies: PoliciesConfigMap | undefined; expect: string }[] = [
    {
      name: 'is known if the parameter is right',
      kubevirts: [kubevirt('kubevirt')],
      policies: policies('kubevirt'),
      expect: CONTROLLER,
    },
    {
      name: 'is known on OpenShift Virtualization',
      kubevirts: [kubevirt('openshift-cnv')],
      policies: policies('openshift-cnv'),
      expect: 'system:serviceaccount:openshift-cnv:kubevirt-controller',
    },
    {
      name: 'is unknown if the parameter names another namespace',
      kubevirts: [kubevirt('openshift-cnv')],
      policies: policies('kubevirt'),
      expect: `kubevirtNamespace in the ConfigMap ${KEY} is "kubevirt", and the KubeVirt object is in namespace openshift-cnv: set it to openshift-cnv`,
    },
    {
      name: 'is unknown if the parameter is empty',
      kubevirts: [kubevirt('kubevirt')],
      policies: policies(''),
      expect: `kubevirtNamespace in the ConfigMap ${KEY} is empty, and the KubeVirt object is in namespace kubevirt: set it to kubevirt`,
    },
    {
      name: 'is unknown if the parameter is absent',
      kubevirts: [kubevirt('kubevirt')],
      policies: policies(),
      expect: `kubevirtNamespace in the ConfigMap ${KEY} is empty, and the KubeVirt object is in namespace kubevirt: set it to kubevirt`,
    },
    {
      name: 'is unknown if the ConfigMap is missing',
      kubevirts: [kubevirt('kubevirt')],
      policies: undefined,
      expect: `the ConfigMap ${KEY} is missing, and the KubeVirt object is in namespace kubevirt: create the ConfigMap with kubevirtNamespace kubevirt`,
    },
    {
      name: 'is unknown without a KubeVirt object, whatever the parameter says',
      kubevirts: [],
      policies: policies('kubevirt'),
      expect: `kubevirtNamespace in the ConfigMap ${KEY} is "kubevirt", and there is no KubeVirt object: create the KubeVirt object, or install KubeVirt`,
    },
    {
      name: 'is not changed by a KubeVirt object that a tenant creates later',
      kubevirts: [kubevirt('vms', 5), kubevirt('kubevirt', 1)],
      policies: policies('kubevirt'),
      expect: CONTROLLER,
    },
    {
      name: 'is no tenant with a KubeVirt object in the namespace that the parameter names by mistake',
      kubevirts: [kubevirt('kubevirt', 5), kubevirt('openshift-cnv', 1)],
      policies: policies('kubevirt'),
      expect: `kubevirtNamespace in the ConfigMap ${KEY} is "kubevirt", and the KubeVirt object is in namespace openshift-cnv: set it to openshift-cnv`,
    },
  ];
  for (const row of rows) {
    it(row.name, () => {
      const { username, problem } = findKubeVirtController(row.kubevirts, row.policies, KEY);
      expect(username ?? problem).to.equal(row.expect);
    });
  }

  it('is reported when KubeVirt moves or the parameter changes, and not otherwise', () => {
    const caches = { kubevirts: new Cache<KubeVirt>(), policies: new Cache<PoliciesConfigMap>() };
    const handlers: (() => void)[] = [];
    const informers = {
      get: (watched: WatchSpec<never>) => ({
        cache: (watched as object) === KUBEVIRT_WATCH ? caches.kubevirts : caches.policies,
        onChange: (handler: () => void) => handlers.push(handler),
      }),
    };
    const told: (string | undefined)[] = [];
    const tell = () => told.push(followed.controller().username);
    const followed = watchKubeVirt(informers as never, 'holdfast-system', tell);
    const change = (act: () => void): void => {
      act();
      for (const handler of handlers) handler();
    };
    change(() => caches.kubevirts.set(kubevirt('kubevirt')));
    change(() => caches.policies.set(policies('kubevirt')));
    change(() => caches.policies.set(policies('kubevirt')));
    change(() => caches.kubevirts.delete('kubevirt/kubevirt'));
    change(() => caches.kubevirts.set(kubevirt('openshift-cnv')));
    change(() => caches.policies.set(policies('openshift-cnv')));
    expect(told).to.deep.equal([
      undefined,
      CONTROLLER,
      undefined,
      undefined,
      'system:serviceaccount:openshift-cnv:kubevirt-controller',
    ]);
  });
});

describe('a pod that a VMI controls', () => {
  const pod = (annotations: Record<string, string>, more: Partial<ObjectMeta> = {}) => ({
    metadata: { name: 'p', ownerReferences: [VMI_OWNER], annotations, ...more },
  });
  const networks = { [NETWORKS_ANNOTATION]: 'blue' };
  const known = { username: CONTROLLER };

  it('is a launcher if no creator is noted, or KubeVirt created it', () => {
    for (const annotations of [networks, { ...networks, [LAUNCHER_CREATOR]: CONTROLLER }]) {
      expect(vmiOfTrustedLauncher(pod(annotations), known)?.name).to.equal('vm1');
    }
  });

  it('is not a launcher if another user created it, it has no networks, or the creator of launchers is unknown', () => {
    expect(vmiOfTrustedLauncher(pod({ ...networks, [LAUNCHER_CREATOR]: TENANT }), known)).to.equal(undefined);
    expect(vmiOfTrustedLauncher(pod({}), known)).to.equal(undefined);
    expect(vmiOfTrustedLauncher(pod(networks), { problem: 'unknown' })).to.equal(undefined);
  });

  it('is reported with its creator and the expected creator', () => {
    expect(describeUntrustedCreator(pod({ [LAUNCHER_CREATOR]: TENANT }), known))
      .to.include(TENANT)
      .and.to.include(CONTROLLER);
  });
});
