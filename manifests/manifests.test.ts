import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { parseNetworkConfig } from '../api/network-attachment.js';
import type { NetworkAttachmentDefinition } from '../api/network-attachment.js';
import { readManifests } from '../e2e/bed/objects.js';
import type { Manifest } from '../e2e/bed/objects.js';
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
      ports: { name: string }[];
      securityContext: object;
      livenessProbe: { httpGet: { port: string } };
      readinessProbe: { httpGet: { port: string } };
    }[];
  };
}

/** The fields of all kinds that are looked at below; each is there in its own kinds only. */
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
    paramKind?: object;
    policyName: string;
    paramRef?: { name: string; parameterNotFoundAction: string };
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

  it('are all in the kustomization, but for the CRD that is not ours and the samples', async () => {
    const { resources } = parse(await readFile(join(MANIFESTS, 'kustomization.yaml'), 'utf8')) as {
      resources: string[];
    };
    const apart = files.filter((path) => path === 'crds/ipamclaims.yaml' || path.startsWith('samples/'));
    expect([...resources, ...apart, 'kustomization.yaml'].sort()).to.deep.equal([...files].sort());
  });

  it('are YAML of named objects', async () => {
    for (const file of files.filter((path) => path !== 'kustomization.yaml')) {
      const found = await readManifests(join(MANIFESTS, file));
      expect(found, file).not.to.be.empty;
      for (const { apiVersion, kind, metadata } of found) {
        expect([apiVersion, kind, metadata.name].every(Boolean), file).to.equal(true);
      }
    }
  });

  it('name each object once', () => {
    const keys = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
    expect(new Set(keys).size).to.equal(keys.length);
  });

  it('put everything that has a namespace into the one that they make', () => {
    const namespaces = objects.flatMap(({ metadata }) => metadata.namespace ?? []);
    expect([...new Set(namespaces)]).to.deep.equal([find('Namespace', 'holdfast-system').metadata.name]);
  });

  for (const process of ['controller', 'webhook']) {
    describe(`of the ${process}`, () => {
      const name = `holdfast-${process}`;

      it('run it under an identity of its own', () => {
        expect(template(name).spec.serviceAccountName).to.equal(name);
        find('ServiceAccount', name);
        for (const kind of ['ClusterRoleBinding', 'RoleBinding']) {
          const { roleRef, subjects } = find(kind, name);
          expect(roleRef).to.include({ kind: kind.replace('Binding', ''), name });
          expect(subjects).to.deep.equal([{ kind: 'ServiceAccount', name, namespace: 'holdfast-system' }]);
        }
      });

      it('select the pods that they make', () => {
        const { labels } = template(name).metadata;
        const { selector } = find('Deployment', name).spec;
        expect(selector).to.deep.equal({ matchLabels: labels });
      });

      it('lead a Service to its metrics', () => {
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

      it('start it with flags that it knows', () => {
        for (const { args } of template(name).spec.containers)
          expect(readCommandLine(args, {})?.process).to.equal(process);
      });

      it('probe ports that it opens', () => {
        for (const { ports, livenessProbe, readinessProbe } of template(name).spec.containers) {
          const names = ports.map((port) => port.name);
          expect(names).to.include(livenessProbe.httpGet.port).and.to.include(readinessProbe.httpGet.port);
        }
      });

      it('grant nothing by wildcard', () => {
        for (const { apiGroups, resources, verbs } of rulesOf(process)) {
          expect([...apiGroups, ...resources, ...verbs].filter((word) => word.includes('*'))).to.deep.equal([]);
        }
      });

      it('grant no write to the status of anything', () => {
        const written = rulesOf(process).filter(({ verbs }) => verbs.some((verb) => WRITE_VERBS.includes(verb)));
        const resources = written.flatMap((rule) => rule.resources);
        expect(resources.filter((resource) => resource.endsWith('/status'))).to.deep.equal([]);
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

  it('let the webhook write nothing but its certificate and its configuration', () => {
    const written = rulesOf('webhook').filter(({ verbs }) => verbs.some((verb) => WRITE_VERBS.includes(verb)));
    expect([...new Set(written.flatMap(({ resources }) => resources))].sort()).to.deep.equal([
      'mutatingwebhookconfigurations',
      'secrets',
    ]);
  });

  it('let the controller write claims, events, its lease, and nothing else', () => {
    const written = rulesOf('controller').filter(({ verbs }) => verbs.some((verb) => WRITE_VERBS.includes(verb)));
    expect([...new Set(written.flatMap(({ resources }) => resources))].sort()).to.deep.equal([
      'events',
      'ipamclaims',
      'leases',
      'virtualmachineinstances/finalizers',
      'virtualmachines/finalizers',
    ]);
  });

  it('lead the Service, the disruption budget and the network policy to the webhook', () => {
    const { labels } = template('holdfast-webhook').metadata;
    const service = find('Service', 'holdfast-webhook');
    expect(service.spec.selector).to.deep.equal(labels);
    const ports = template('holdfast-webhook').spec.containers.flatMap((container) => container.ports);
    for (const { targetPort } of service.spec.ports) expect(ports.map(({ name }) => name)).to.include(targetPort);
    const budget = find('PodDisruptionBudget', 'holdfast-webhook');
    expect(budget.spec.selector).to.deep.equal({ matchLabels: labels });
    const policy = find('NetworkPolicy', 'holdfast-webhook');
    expect(policy.spec.podSelector).to.deep.equal({ matchLabels: labels });
  });

  it('lead the API server to that Service, and let the webhook write that configuration', () => {
    const { webhooks } = find('MutatingWebhookConfiguration', 'holdfast-webhook');
    for (const { clientConfig } of webhooks) {
      expect(clientConfig.service).to.include({ name: 'holdfast-webhook', namespace: 'holdfast-system' });
    }
    const own = rulesOf('webhook').filter(({ resources }) => resources.includes('mutatingwebhookconfigurations'));
    expect(own.map(({ resourceNames }) => resourceNames)).to.deep.equal([['holdfast-webhook']]);
  });

  it('bind each policy, to parameters that are there', () => {
    const policies = objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');
    expect(policies).not.to.be.empty;
    for (const { metadata, spec } of policies) {
      const { paramKind, failurePolicy } = spec;
      const binding = find('ValidatingAdmissionPolicyBinding', metadata.name);
      expect(binding.spec.policyName).to.equal(metadata.name);
      expect(failurePolicy).to.equal('Fail');
      expect(binding.spec.paramRef === undefined, metadata.name).to.equal(paramKind === undefined);
      if (binding.spec.paramRef === undefined) continue;
      find('ConfigMap', binding.spec.paramRef.name);
      expect(binding.spec.paramRef.parameterNotFoundAction).to.equal('Deny');
    }
  });

  it('show a network that allows persistent addresses, and a VM on it', async () => {
    const [network] = await readManifests(join(MANIFESTS, 'samples', 'network.yaml'));
    const [vm] = await readManifests(join(MANIFESTS, 'samples', 'vm.yaml'));
    const config = parseNetworkConfig(network as NetworkAttachmentDefinition);
    expect(config).to.deep.equal({ ok: true, network: { name: 'blue', allowPersistentIPs: true } });
    expect(JSON.stringify(vm)).to.include(`"networkName":"${network?.metadata.name ?? ''}"`);
  });
});
