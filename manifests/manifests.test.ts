import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { type Manifest, readManifests } from '../e2e/bed/objects.js';
import { MANIFESTS, readKustomization } from '../e2e/holdfast/manifests.js';
import { readCommandLine } from '../process/command-line.js';

interface Rule {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
}

interface PodTemplate {
  metadata: { labels: Record<string, string> };
  spec: {
    serviceAccountName: string;
    securityContext: object;
    containers: {
      name: string;
      args: string[];
      env: { name: string; value?: string }[];
      ports: { name: string }[];
      resources: { limits: { memory: string } };
      securityContext: object;
      livenessProbe: { httpGet: { port: string } };
      readinessProbe: { httpGet: { port: string } };
    }[];
  };
}

/** The fields of all kinds that these tests read. Each kind has only some of them. */
interface Shipped extends Manifest {
  rules: Rule[];
  roleRef: object;
  subjects: object[];
  webhooks: { clientConfig: { service: { name: string; namespace: string } } }[];
  spec: {
    template: PodTemplate;
    selector: object;
    podSelector: object;
    ports: { targetPort: string }[];
    failurePolicy: string;
    paramKind?: { kind: string };
    policyName: string;
    paramRef?: { name: string; selector?: object; parameterNotFoundAction: string };
  };
}

const WRITE_VERBS = ['create', 'update', 'patch', 'delete', 'deletecollection', '*'];

describe('the manifests', () => {
  let files: string[] = [];
  let objects: Shipped[] = [];

  before(async () => {
    const entries = await readdir(MANIFESTS, { recursive: true });
    files = entries.filter((path) => path.endsWith('.yaml'));
    objects = (await readKustomization()) as Shipped[];
  });

  function find(kind: string, name: string): Shipped {
    const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
    if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
    return found;
  }

  function template(name: string): PodTemplate {
    return find('Deployment', name).spec.template;
  }

  function rulesOf(process: string): Rule[] {
    const name = `holdfast-${process}`;
    return ['ClusterRole', 'Role'].flatMap((kind) => find(kind, name).rules);
  }

  it('are all in the kustomization, except the upstream CRD and the samples', async () => {
    const { resources } = parse(await readFile(join(MANIFESTS, 'kustomization.yaml'), 'utf8')) as {
      resources: string[];
    };
    const apart = files.filter((path) => path === 'crds/ipamclaims.yaml' || path.startsWith('samples/'));
    expect([...resources, ...apart, 'kustomization.yaml'].sort()).to.deep.equal([...files].sort());
  });

  it('contain only named objects', async () => {
    for (const file of files.filter((path) => path !== 'kustomization.yaml')) {
      const found = await readManifests(join(MANIFESTS, file));
      expect(found, file).not.to.be.empty;
      for (const { apiVersion, kind, metadata } of found) {
        expect([apiVersion, kind, metadata.name].every(Boolean), file).to.equal(true);
      }
    }
  });

  it('define each object once', () => {
    const keys = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
    expect(new Set(keys).size).to.equal(keys.length);
  });

  it('put agents into one namespace and all other namespaced objects into the other, and create both', () => {
    const made = objects.filter(({ kind }) => kind === 'Namespace').map(({ metadata }) => metadata.name);
    expect(made).to.have.members(['holdfast-system', 'holdfast-agents']);
    for (const { kind, metadata } of objects.filter((object) => object.metadata.namespace !== undefined)) {
      const home = metadata.name.startsWith('holdfast-agent') ? 'holdfast-agents' : 'holdfast-system';
      expect(metadata.namespace, `${kind} ${metadata.name}`).to.equal(home);
    }
  });

  for (const process of ['controller', 'webhook', 'ipam', 'capacity']) {
    describe(`of the ${process} process`, () => {
      const name = `holdfast-${process}`;

      it('run it under its own identity', () => {
        expect(template(name).spec.serviceAccountName).to.equal(name);
        find('ServiceAccount', name);
        for (const kind of ['ClusterRoleBinding', 'RoleBinding']) {
          const { roleRef, subjects } = find(kind, name);
          expect(roleRef).to.include({ kind: kind.replace('Binding', ''), name });
          expect(subjects).to.deep.equal([{ kind: 'ServiceAccount', name, namespace: 'holdfast-system' }]);
        }
      });

      it('select the pods that they create', () => {
        const { labels } = template(name).metadata;
        const { selector } = find('Deployment', name).spec;
        expect(selector).to.deep.equal({ matchLabels: labels });
      });

      it('have a Service for its metrics', () => {
        const { metadata, spec } = template(name);
        const service = find('Service', `${name}-metrics`);
        expect(service.spec.selector).to.deep.equal(metadata.labels);
        const opened = spec.containers.flatMap(({ ports }) => ports.map((port) => port.name));
        expect(service.spec.ports.map(({ targetPort }) => targetPort)).to.deep.equal(['metrics']);
        expect(opened).to.include('metrics');
      });

      it('harden the pod', () => {
        const { spec } = template(name);
        expect(spec.securityContext).to.deep.equal({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
        for (const container of spec.containers) {
          expect(container.securityContext).to.deep.equal({
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          });
        }
      });

      it('start it with valid flags', () => {
        for (const { args } of template(name).spec.containers)
          expect(readCommandLine(args, {})?.process).to.equal(process);
      });

      it('probe the ports that it opens', () => {
        for (const { ports, livenessProbe, readinessProbe } of template(name).spec.containers) {
          const names = ports.map((port) => port.name);
          expect(names).to.include(livenessProbe.httpGet.port).and.to.include(readinessProbe.httpGet.port);
        }
      });

      it('grant no rights by wildcard', () => {
        for (const { apiGroups, resources, verbs } of rulesOf(process)) {
          expect([...apiGroups, ...resources, ...verbs].filter((word) => word.includes('*'))).to.deep.equal([]);
        }
      });

      it('grant Secrets and Leases in its own namespace only, by name where RBAC can', () => {
        const { rules: everywhere } = find('ClusterRole', name);
        const { rules: here } = find('Role', name);
        const granted = everywhere.flatMap(({ resources }) => resources);
        expect(granted).not.to.include('secrets').and.not.to.include('leases');
        for (const { verbs, resourceNames } of here) {
          if (!verbs.includes('create')) expect(resourceNames).to.have.length(1);
          else expect(verbs).to.deep.equal(['create']);
        }
      });
    });
  }

  const written: Record<string, string[]> = {
    webhook: ['mutatingwebhookconfigurations', 'secrets'],
    capacity: ['leases', 'nodes/status'],
    controller: ['events', 'ipamclaims', 'leases', 'virtualmachineinstances/finalizers', 'virtualmachines/finalizers'],
    ipam: [
      'addressblocks',
      'addressblocks/status',
      'addressleases',
      'addresspools',
      'addresspools/status',
      'events',
      'ipamclaims/status',
      'leases',
      'secrets',
      'validatingwebhookconfigurations',
    ],
  };
  for (const [process, resources] of Object.entries(written)) {
    it(`allow the ${process} to write ${resources.join(', ')}, and nothing else`, () => {
      const rules = rulesOf(process).filter(({ verbs }) => verbs.some((verb) => WRITE_VERBS.includes(verb)));
      expect([...new Set(rules.flatMap((rule) => rule.resources))].sort()).to.deep.equal(resources);
    });
  }

  it('add only read access to the aggregated roles of users', () => {
    const aggregated = objects.filter(({ metadata }) =>
      Object.keys(metadata.labels ?? {}).some((label) => label.startsWith('rbac.authorization.k8s.io/aggregate-to-')),
    );
    expect(aggregated).not.to.be.empty;
    const verbs = aggregated.flatMap(({ rules }) => rules.flatMap((rule) => rule.verbs));
    expect([...new Set(verbs)].sort()).to.deep.equal(['get', 'list', 'watch']);
  });

  for (const [name, kind, configurations] of [
    ['holdfast-webhook', 'MutatingWebhookConfiguration', ['holdfast-webhook', 'holdfast-webhook-capacity']],
    ['holdfast-ipam', 'ValidatingWebhookConfiguration', ['holdfast-ipam']],
  ] as const) {
    it(`select ${name} by its Service, disruption budget and network policy`, () => {
      const { labels } = template(name).metadata;
      const service = find('Service', name);
      expect(service.spec.selector).to.deep.equal(labels);
      const ports = template(name).spec.containers.flatMap((container) => container.ports);
      for (const { targetPort } of service.spec.ports) expect(ports.map((port) => port.name)).to.include(targetPort);
      const budget = find('PodDisruptionBudget', name);
      expect(budget.spec.selector).to.deep.equal({ matchLabels: labels });
      const policy = find('NetworkPolicy', name);
      expect(policy.spec.podSelector).to.deep.equal({ matchLabels: labels });
    });

    it(`direct the API server to that Service, and allow ${name} to write the ${kind}`, () => {
      const webhooks = configurations.flatMap((configuration) => find(kind, configuration).webhooks);
      for (const { clientConfig } of webhooks) {
        expect(clientConfig.service).to.include({ name, namespace: 'holdfast-system' });
      }
      const plural = `${kind.toLowerCase()}s`;
      const own = find('ClusterRole', name).rules.filter(({ resources }) => resources.includes(plural));
      expect(own.map(({ resourceNames }) => resourceNames)).to.deep.equal([[...configurations]]);
    });
  }

  it('allow only API servers to reach the HTTPS ports, only labelled namespaces to reach metrics, and no pod to reach probes', () => {
    const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy');
    const workloads = objects.filter(({ kind }) => ['Deployment', 'DaemonSet'].includes(kind));
    const matchLabels = { 'ipam.holdfast.dev/metrics': 'allowed' };
    const metrics = { from: [{ namespaceSelector: { matchLabels } }], ports: [{ port: 'metrics' }] };
    const cidrs = ['0.0.0.0/0', '::/0'].map((cidr) => ({ ipBlock: { cidr } }));
    const https = { from: cidrs, ports: [{ port: 'https' }] };
    expect(policies).to.have.length(workloads.length);
    for (const { kind, metadata, spec } of workloads) {
      const policy = policies.find(({ metadata: { name } }) => name === metadata.name);
      const ports = spec.template.spec.containers.flatMap((container) => container.ports.map(({ name }) => name));
      expect(policy?.metadata.namespace, kind).to.equal(metadata.namespace);
      expect(policy?.spec, metadata.name).to.deep.include({
        podSelector: { matchLabels: spec.template.metadata.labels },
        policyTypes: ['Ingress', 'Egress'],
        ingress: [...(ports.includes('https') ? [https] : []), metrics],
      });
    }
  });

  it('limit the heap of ipam below its memory limit', () => {
    const [container] = template('holdfast-ipam').spec.containers;
    const options = container?.env.find(({ name }) => name === 'NODE_OPTIONS')?.value ?? '';
    const heapMiB = Number(/^--max-old-space-size=(\d+)$/.exec(options)?.[1]);
    expect(container?.resources.limits.memory).to.equal('1Gi');
    expect(heapMiB).to.equal(1024 * 0.75);
  });

  it('bind each policy, to parameters that exist', () => {
    const policies = objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');
    expect(policies).not.to.be.empty;
    for (const { metadata, spec } of policies) {
      const { paramKind, failurePolicy } = spec;
      const binding = find('ValidatingAdmissionPolicyBinding', metadata.name);
      expect(binding.spec.policyName).to.equal(metadata.name);
      expect(failurePolicy).to.equal('Fail');
      expect(binding.spec.paramRef === undefined, metadata.name).to.equal(paramKind === undefined);
      if (binding.spec.paramRef === undefined) continue;
      const { name, selector, parameterNotFoundAction } = binding.spec.paramRef;
      if (paramKind?.kind === 'AddressPool') {
        // no pool, nothing to guard
        find('CustomResourceDefinition', 'addresspools.ipam.holdfast.dev');
        expect({ selector, parameterNotFoundAction }).to.deep.equal({ selector: {}, parameterNotFoundAction: 'Allow' });
      } else {
        find('ConfigMap', name);
        // launchers are admitted without parameters, and launcher-creator needs none
        const wanted = metadata.name === 'holdfast-launcher-owner' ? 'Allow' : 'Deny';
        expect(parameterNotFoundAction, metadata.name).to.equal(wanted);
      }
    }
  });
});
