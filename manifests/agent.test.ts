import { expect } from 'chai';
import type { Manifest } from '../bed/control-plane/objects.js';
import { readInstallation } from '../bed/holdfast/manifests.js';
import { NAMESPACES_FOLDER } from '../cni/agent/sandboxes.js';
import { readCommandLine } from '../process/command-line.js';
import type { Probe } from './testing/installation.js';

const NAME = 'holdfast-agent';
const HOST_DIRECTORY = {
  name: 'HOLDFAST_CNI_BIN_HOST_DIR',
  valueFrom: { fieldRef: { fieldPath: "metadata.annotations['ipam.holdfast.dev/cni-bin-dir']" } },
};
const HOST_FOLDERS = ['/run/holdfast', '/opt/cni/bin', NAMESPACES_FOLDER];

interface Container {
  name: string;
  args: string[];
  env: { name: string; valueFrom?: object }[];
  ports: { name: string }[];
  securityContext: object;
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
  livenessProbe: Probe;
  readinessProbe: Probe;
}

interface PodSpec {
  serviceAccountName: string;
  automountServiceAccountToken: boolean;
  hostNetwork?: boolean;
  hostPID?: boolean;
  tolerations: object[];
  securityContext: object;
  initContainers: [Container, ...Container[]];
  containers: [Container, ...Container[]];
  volumes: { name: string; hostPath: { path: string; type: string } }[];
}

/** The fields of all kinds that these tests read. Each kind has only some of them. */
interface Shipped extends Manifest {
  rules: { resources: string[]; verbs: string[]; apiGroups: string[] }[];
  roleRef: object;
  subjects: object[];
  spec: {
    template: { metadata: { labels: object; annotations: Record<string, string> }; spec: PodSpec };
    selector: object;
    podSelector: object;
    ports: { targetPort: string }[];
  };
}

describe('the manifests of the agent', () => {
  let objects: Shipped[] = [];
  let pod: PodSpec;
  let labels: object;
  let annotations: Record<string, string>;

  before(async () => {
    objects = (await readInstallation()) as Shipped[];
    const { template } = find('DaemonSet', NAME).spec;
    pod = template.spec;
    ({ labels, annotations } = template.metadata);
  });

  function find(kind: string, name: string): Shipped {
    const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
    if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
    return found;
  }

  it('start it with valid flags and the name of its node', () => {
    const [{ args, env }] = pod.containers;
    expect(env).to.deep.equal([
      { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
      HOST_DIRECTORY,
    ]);
    const request = readCommandLine(args, { NODE_NAME: 'node-1' });
    expect(request?.process).to.equal('agent');
    expect(request?.config).to.include({ nodeName: 'node-1', runDir: '/run/holdfast' });
  });

  it('mount the folders that its flags name, that of network namespaces read-only, and no others of the node', () => {
    const [{ args, volumeMounts }] = pod.containers;
    expect(pod.volumes.map(({ hostPath }) => hostPath.path)).to.deep.equal(HOST_FOLDERS);
    const request = readCommandLine(args, { NODE_NAME: 'node-1' });
    if (request?.process !== 'agent') throw new Error('it is no agent');
    const folders = volumeMounts.map(({ mountPath }) => mountPath);
    expect(folders).to.deep.equal([request.config.runDir, request.config.cniBinDir, NAMESPACES_FOLDER]);
    expect(volumeMounts.map(({ readOnly = false }) => readOnly)).to.deep.equal([false, true, true]);
    expect(volumeMounts.map(({ name }) => name)).to.deep.equal(pod.volumes.map(({ name }) => name));
  });

  it('install the plugin with an init container, so that the agent cannot write to the directory of CNI plugins', () => {
    const [{ args, env, volumeMounts, name }] = pod.initContainers;
    const request = readCommandLine(args, { HOLDFAST_CNI_BIN_HOST_DIR: '/opt/cni/bin' });
    if (request?.process !== 'install-plugin') throw new Error('it does not install the plugin');
    const { cniBinDir, cniBinHostDir } = request.config;
    expect(name).to.equal('install-plugin');
    expect(volumeMounts).to.deep.equal([{ name: 'cni-bin', mountPath: cniBinDir }]);
    expect(pod.containers[0].volumeMounts).to.deep.include({ name: 'cni-bin', mountPath: cniBinDir, readOnly: true });
    expect(env).to.deep.equal([HOST_DIRECTORY]);
    expect(annotations['ipam.holdfast.dev/cni-bin-dir']).to.equal(cniBinHostDir);
  });

  it('run it as root without capabilities, and its init container with the one to write into directories of others', () => {
    expect(pod.securityContext).to.deep.equal({
      runAsUser: 0,
      runAsGroup: 0,
      seccompProfile: { type: 'RuntimeDefault' },
      seLinuxOptions: { type: 'spc_t' },
    });
    expect(pod).not.to.have.any.keys('hostNetwork', 'hostPID', 'hostIPC');
    const confined = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true };
    for (const { securityContext } of pod.containers) {
      expect(securityContext).to.deep.equal({ ...confined, capabilities: { drop: ['ALL'] } });
    }
    for (const { securityContext } of pod.initContainers) {
      const capabilities = { drop: ['ALL'], add: ['DAC_OVERRIDE'] };
      expect(securityContext).to.deep.equal({ ...confined, capabilities });
    }
  });

  it('run it on every node, even on tainted nodes', () => {
    expect(pod.tolerations).to.deep.equal([{ operator: 'Exists' }]);
  });

  it('run it under an identity of its own, with the token of its pod', () => {
    expect(pod).to.include({ serviceAccountName: NAME, automountServiceAccountToken: true });
    const { namespace } = find('ServiceAccount', NAME).metadata;
    const { roleRef, subjects } = find('ClusterRoleBinding', NAME);
    expect(roleRef).to.include({ kind: 'ClusterRole', name: NAME });
    expect(subjects).to.deep.equal([{ kind: 'ServiceAccount', name: NAME, namespace }]);
  });

  it('grant it writes of leases, of the status of blocks, of events and of reviews, and no other writes', () => {
    const { rules } = find('ClusterRole', NAME);
    const reading = ['get', 'list', 'watch'];
    const writing = rules.filter(({ verbs }) => verbs.some((verb) => !reading.includes(verb)));
    expect(writing).to.deep.equal([
      { apiGroups: ['ipam.holdfast.dev'], resources: ['addressleases'], verbs: [...reading, 'create', 'patch'] },
      { apiGroups: ['ipam.holdfast.dev'], resources: ['addressblocks/status'], verbs: ['patch'] },
      { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
      // they ask the API server who may read the metrics, and store nothing
      { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
      { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
    ]);
    expect(objects.filter(({ kind, metadata }) => kind === 'Role' && metadata.name === NAME)).to.deep.equal([]);
  });

  it('select its pods by the DaemonSet, the metrics Service and the network policy', () => {
    expect(find('DaemonSet', NAME).spec.selector).to.deep.equal({ matchLabels: labels });
    expect(find('NetworkPolicy', NAME).spec.podSelector).to.deep.equal({ matchLabels: labels });
    const service = find('Service', `${NAME}-metrics`).spec;
    expect(service.selector).to.deep.equal(labels);
    const [{ ports, livenessProbe, readinessProbe }] = pod.containers;
    const opened = ports.map(({ name }) => name);
    expect(opened).to.include.members(service.ports.map(({ targetPort }) => targetPort));
    expect(opened).to.include.members([livenessProbe.httpGet.port, readinessProbe.httpGet.port]);
  });

  it('do not restart it because it starts or answers slowly on a busy node', () => {
    const [{ livenessProbe, readinessProbe }] = pod.containers;
    expect(livenessProbe).to.include({ initialDelaySeconds: 30, timeoutSeconds: 10 });
    expect(readinessProbe.timeoutSeconds).to.equal(5);
  });
});
