import {
  type ResponderSettings,
  type StatefulSet,
  responderBudget,
  responderNames,
  responderSet,
  serverClaim,
} from '../../guest/responder-manager/objects.js';
import type { ObjectMeta } from '../../api/meta.js';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import { IPAM_CLAIMS, POD_DISRUPTION_BUDGETS, STATEFUL_SETS } from '../../kube/resources.js';
import { until } from '../../bed/processes/wait.js';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';

const NAMESPACE = 'holdfast-responders';
const POOL = compiledPool({ guest: { attachment: 'blue', dhcp: {} } });
const SETTINGS: ResponderSettings = {
  image: 'registry.example/holdfast:1.0.0',
  maxStalenessMs: 30_000,
  logLevel: 'info',
  template: {},
};
const SET = responderSet(POOL, 'blue', SETTINGS);
const PARAMETERS = {
  kubevirtNamespace: 'kubevirt',
  responderImages: 'registry.example/first\n registry.example/holdfast ',
  responderExtras: 'team\nexample.com/scrape\nexample.com/device',
};

type Fields = Record<string, unknown>;
type Container = Fields & { image: string; args: string[]; securityContext: Fields; resources: { limits: Fields } };
type PodSpec = Fields & { volumes: Fields[]; containers: Container[]; securityContext: Fields };

/** The set after a change of its pods, or of itself. */
function changed(change: (pod: PodSpec, set: StatefulSet) => void): StatefulSet {
  const set = structuredClone(SET);
  change(set.spec.template.spec as PodSpec, set);
  return set;
}

/** The set with other fields of its pods. */
function withPod(fields: Fields): StatefulSet {
  return changed((pod) => Object.assign(pod, fields));
}

/** The set with other fields of a container. */
function withContainer(index: 0 | 1, fields: Fields): StatefulSet {
  return changed(({ containers }) => Object.assign(containers[index] ?? {}, fields));
}

function withSecurity(index: 0 | 1, fields: Fields): StatefulSet {
  return changed(({ containers }) => Object.assign(containers[index]?.securityContext ?? {}, fields));
}

function withImage(image: string): StatefulSet {
  return changed(({ containers }) => containers.forEach((each) => (each.image = image)));
}

/** The set with other volumes, or sources of the token's volume. */
function withVolume(name: string, source: Fields): StatefulSet {
  return changed((pod) => (pod.volumes = [...pod.volumes.filter((each) => each.name !== name), { name, ...source }]));
}

/** The set with another annotation or label of its pods. */
function withMetadata(field: 'annotations' | 'labels', key: string, value: string): StatefulSet {
  return changed((_, { spec }) => Object.assign((spec.template.metadata as ObjectMeta)[field] ?? {}, { [key]: value }));
}

describe('the admission policy for responders, on a kube-apiserver', function () {
  let own: Client;
  let cluster: PolicyCluster;

  usePolicyCluster(
    this,
    async (started) => {
      cluster = started;
      own = await cluster.withToken({ namespace: 'holdfast-system', name: 'holdfast-guest' });
      const foreign = withPod({ serviceAccountName: 'default' });
      await untilDenied(() => own.create(STATEFUL_SETS, foreign, { dryRun: true }));
    },
    PARAMETERS,
  );

  it('allows guest to create and change the responders of a pool, their budget and their claims', async () => {
    const { name } = (await own.create(STATEFUL_SETS, SET)).metadata;
    const operations = [{ op: 'replace' as const, path: '/spec/template', value: SET.spec.template }];
    await own.patch(STATEFUL_SETS, { namespace: NAMESPACE, name }, { type: 'json', operations });
    await own.create(POD_DISRUPTION_BUDGETS, responderBudget(SET));
    const [first = ''] = responderNames(name);
    await own.create(IPAM_CLAIMS, serverClaim(first, POOL));
    await own.delete(IPAM_CLAIMS, { namespace: NAMESPACE, name: first });
    await own.delete(STATEFUL_SETS, { namespace: NAMESPACE, name });
  });

  it('allows guest the annotations, labels and resources that the administrator lists', () =>
    own.create(
      STATEFUL_SETS,
      responderSet(POOL, 'blue', {
        ...SETTINGS,
        template: {
          podLabels: { team: 'network' },
          podAnnotations: { 'example.com/scrape': 'true' },
          resources: { limits: { 'example.com/device': 1 } },
          tolerations: [{ key: 'network', operator: 'Exists' }],
        },
      }),
      { dryRun: true },
    ));

  it('allows guest any image while the administrator lists none', async () => {
    const other = withImage('registry.example/other:1');
    const attempt = () => own.create(STATEFUL_SETS, other, { dryRun: true });
    await expectDenial(attempt(), 'an image that is not in responderImages');
    await cluster.setParameters({ ...PARAMETERS, responderImages: '' });
    await until('the image is allowed', attempt);
    await cluster.setParameters(PARAMETERS);
    await untilDenied(attempt);
  });

  const httpGet = { path: '/', port: 80 };
  const denied: Record<string, [string, StatefulSet][]> = {
    'writes only StatefulSets of responders': [
      ['of another name', changed((_, { metadata }) => (metadata.name = 'other'))],
      ['with three replicas', changed((_, { spec }) => (spec.replicas = 3))],
      [
        'with a claim for a volume',
        changed((_, { spec }) => {
          const resources = { requests: { storage: '1Mi' } };
          spec.volumeClaimTemplates = [
            { metadata: { name: 'socket' }, spec: { accessModes: ['ReadWriteOnce'], resources } },
          ];
        }),
      ],
    ],
    'by a NetworkAttachmentDefinition of their namespace': [
      [
        'on a network of a tenant',
        withMetadata('annotations', NETWORKS_ANNOTATION, '[{"name":"blue","namespace":"vms","interface":"guest0"}]'),
      ],
      ['on a second network', withMetadata('annotations', NETWORKS_ANNOTATION, 'vms/blue')],
      ['on no network', changed((_, { spec }) => delete (spec.template.metadata as ObjectMeta).annotations)],
    ],
    'an annotation or label that is not in responderExtras': [
      ['with another default network', withMetadata('annotations', 'v1.multus-cni.io/default-network', 'vms/blue')],
      ['with an annotation for the runtime', withMetadata('annotations', 'io.kubernetes.cri-o.Devices', '/dev/kvm')],
      ['with a label', withMetadata('labels', 'azure.workload.identity/use', 'true')],
    ],
    'have the account holdfast-responder': [
      ['of another account', withPod({ serviceAccountName: 'default' })],
      ['that mounts the token everywhere', withPod({ automountServiceAccountToken: true })],
    ],
    'no namespace of their node': [
      ['in the network of its node', withPod({ hostNetwork: true })],
      ['with the processes of its node', withPod({ hostPID: true })],
      ['with the IPC namespace of its node', withPod({ hostIPC: true })],
      ['whose containers see the processes of each other', withPod({ shareProcessNamespace: true })],
    ],
    'are scheduled as other pods': [
      ['on a node of its choice', withPod({ nodeName: 'node-1' })],
      ['with another runtime', withPod({ runtimeClassName: 'privileged' })],
      ['with a claim for devices', withPod({ resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }] })],
      ['with another address of the API server', withPod({ hostAliases: [{ ip: '192.0.2.1', hostnames: ['a'] }] })],
      ['with name servers of its own', withPod({ dnsConfig: { nameservers: ['192.0.2.1'] } })],
      ['with the name servers of its node', withPod({ dnsPolicy: 'Default' })],
      ['with another scheduler', withPod({ schedulerName: 'other' })],
    ],
    'the default seccomp profile': [
      ['without a security context', withPod({ securityContext: {} })],
      ['without a seccomp profile', withPod({ securityContext: { seccompProfile: { type: 'Unconfined' } } })],
      ['without an AppArmor profile', changed((pod) => (pod.securityContext.appArmorProfile = { type: 'Unconfined' }))],
      [
        'with an identity of Windows',
        changed((pod) => (pod.securityContext.windowsOptions = { gmsaCredentialSpecName: 'x' })),
      ],
      ['with an SELinux type', changed((pod) => (pod.securityContext.seLinuxOptions = { type: 'spc_t' }))],
      [
        'with a sysctl',
        changed((pod) => (pod.securityContext.sysctls = [{ name: 'kernel.shm_rmid_forced', value: '1' }])),
      ],
    ],
    'only the volumes socket and token': [
      ['with a path of its node', withVolume('root', { hostPath: { path: '/' } })],
      ['with a path of its node as socket', withVolume('socket', { hostPath: { path: '/' } })],
      ['with a Secret', withVolume('secret', { secret: { secretName: 'x' } })],
      ['with a Secret as token', withVolume('token', { projected: { sources: [{ secret: { name: 'x' } }] } })],
      [
        'with a token for another service',
        withVolume('token', { projected: { sources: [{ serviceAccountToken: { path: 'x', audience: 'vault' } }] } }),
      ],
      ['with a ConfigMap', withVolume('token', { projected: { sources: [{ configMap: { name: 'x' } }] } })],
    ],
    'the containers table and packets': [
      [
        'with a third container',
        changed(({ containers }) => containers.push({ ...containers[0]!, name: 'third', ports: [] })),
      ],
      ['with an init container', withPod({ initContainers: [{ name: 'first', image: SETTINGS.image }] })],
      ['of two images', withContainer(1, { image: `${SETTINGS.image}-other` })],
    ],
    'an image that is not in responderImages': [
      ['of an image that only begins like an allowed one', withImage('registry.example/holdfast-2:1')],
      ['of an image in another registry', withImage('other.example/registry.example/holdfast:1')],
    ],
    'the containers run responder and holdfast-packets': [
      ['that runs another process with the token', withContainer(0, { args: ['ipam'] })],
      ['that runs another program with the token', withContainer(0, { command: ['/bin/sh'] })],
      ['that runs another program with the capability', withContainer(1, { command: ['/bin/sh'] })],
      ['that runs the program of the image with the capability', withContainer(1, { command: [] })],
    ],
    'have only the variables POD_NAME and POD_NAMESPACE': [
      [
        'with a Secret in a variable',
        withContainer(0, { env: [{ name: 'POD_NAME', valueFrom: { secretKeyRef: { name: 'x', key: 'y' } } }] }),
      ],
      ['with Secrets as variables', withContainer(1, { envFrom: [{ secretRef: { name: 'x' } }] })],
      ['that can be debugged', withContainer(0, { env: [{ name: 'NODE_OPTIONS', value: '--inspect=0.0.0.0' }] })],
    ],
    'probes of responders ask the pod itself': [
      [
        'whose kubelet asks another host',
        withContainer(0, { livenessProbe: { httpGet: { ...httpGet, host: '192.0.2.1' } } }),
      ],
      [
        'whose kubelet connects to another host',
        withContainer(0, { readinessProbe: { tcpSocket: { port: 80, host: '192.0.2.1' } } }),
      ],
      ['with a startup probe', withContainer(1, { startupProbe: { httpGet } })],
      ['with a handler', withContainer(1, { lifecycle: { preStop: { httpGet: { ...httpGet, host: '192.0.2.1' } } } })],
    ],
    'drop all capabilities': [
      ['with a privileged container', withSecurity(1, { privileged: true, allowPrivilegeEscalation: true })],
      ['that may get more rights', withSecurity(0, { allowPrivilegeEscalation: true })],
      ['that can write its file system', withSecurity(1, { readOnlyRootFilesystem: false })],
      ['that keeps capabilities', withSecurity(1, { capabilities: { add: ['NET_RAW'] } })],
      ['whose container has no seccomp profile', withSecurity(1, { seccompProfile: { type: 'Unconfined' } })],
      ['whose container has no AppArmor profile', withSecurity(1, { appArmorProfile: { type: 'Unconfined' } })],
      ['whose container has an SELinux type', withSecurity(1, { seLinuxOptions: { type: 'spc_t' } })],
      [
        'whose container has an identity of Windows',
        withSecurity(1, { windowsOptions: { gmsaCredentialSpecName: 'x' } }),
      ],
      [
        'whose container sees all of /proc',
        changed((pod) => {
          pod.hostUsers = false;
          pod.containers[1]!.securityContext.procMount = 'Unmasked';
        }),
      ],
    ],
    'use no port of their node': [
      ['with a port of its node', withContainer(0, { ports: [{ containerPort: 1, hostPort: 1 }] })],
    ],
    'a resource that is not in responderExtras': [
      ['with a device', withContainer(1, { resources: { limits: { 'devices.kubevirt.io/kvm': 1 } } })],
    ],
    'only the container packets has a capability': [
      ['with another capability', withSecurity(1, { capabilities: { drop: ['ALL'], add: ['NET_RAW', 'SYS_ADMIN'] } })],
      [
        'whose container with the token has a capability',
        withSecurity(0, { capabilities: { drop: ['ALL'], add: ['NET_RAW'] } }),
      ],
      ['whose container with the token runs as root', withSecurity(0, { runAsNonRoot: false, runAsUser: 0 })],
    ],
    'has no token': [
      [
        'whose container with the capability has the token',
        changed(({ containers }) => (containers[1]!.volumeMounts as Fields[]).push({ name: 'token', mountPath: '/t' })),
      ],
    ],
  };
  for (const [message, sets] of Object.entries(denied)) {
    for (const [name, set] of sets) {
      it(`denies guest a StatefulSet ${name}`, () =>
        expectDenial(own.create(STATEFUL_SETS, set, { dryRun: true }), message));
    }
  }

  it('lets administrators run what they like', async () => {
    const other = withPod({ serviceAccountName: 'default' });
    await cluster.admin.create(STATEFUL_SETS, other, { dryRun: true });
  });
});
