import { join } from 'node:path';
import { expect } from 'chai';
import { type Manifest, readManifests } from '../bed/control-plane/objects.js';
import { MANIFESTS } from '../bed/holdfast/manifests.js';
import { GO_TOOL_TIMEOUT_MS } from '../test/go-tools.js';
import { DEPLOYED, Installation } from './testing/installation.js';
import { kustomizeBase } from './testing/render.js';

describe('the Services and NetworkPolicies of the manifests', () => {
  let shipped: Installation;

  before(async () => {
    shipped = await Installation.read();
  });

  for (const process of [...DEPLOYED, 'agent']) {
    it(`have a Service for the metrics of the ${process} process`, () => {
      const name = `holdfast-${process}`;
      const { metadata, spec } = shipped.workloads().find((workload) => workload.metadata.name === name)!.spec.template;
      const service = shipped.find('Service', `${name}-metrics`);
      expect(service.spec.selector).to.deep.equal(metadata.labels);
      const opened = spec.containers.flatMap(({ ports }) => ports.map((port) => port.name));
      expect(service.spec.ports.map(({ targetPort }) => targetPort)).to.deep.equal(['metrics']);
      expect(opened).to.include('metrics');
    });
  }

  it('have monitors for the Prometheus Operator that find the metrics of every process, and send a token', async () => {
    const file = join(MANIFESTS, 'components', 'prometheus-operator', 'monitors.yaml');
    const monitors = (await readManifests(file)) as (Manifest & {
      spec: { selector: object; endpoints: object[]; targetLabels: string[] };
    })[];
    const services = shipped.objects.filter(
      ({ kind, metadata }) => kind === 'Service' && metadata.name.endsWith('-metrics'),
    );
    expect(new Set(monitors.map(({ metadata }) => metadata.namespace))).to.deep.equal(
      new Set(services.map(({ metadata }) => metadata.namespace)),
    );
    for (const { metadata, spec } of services) {
      expect(spec.ports[0], metadata.name).to.include({ name: 'metrics', port: 8443 });
      expect(metadata.labels).to.include({ 'app.kubernetes.io/name': 'holdfast' });
    }
    expect(monitors.map(({ spec }) => spec.selector)).to.deep.equal([
      {
        matchLabels: { 'app.kubernetes.io/name': 'holdfast' },
        matchExpressions: [{ key: 'app.kubernetes.io/component', operator: 'NotIn', values: ['agent', 'responder'] }],
      },
      ...['agent', 'responder'].map((component) => ({
        matchLabels: { 'app.kubernetes.io/name': 'holdfast', 'app.kubernetes.io/component': component },
      })),
    ]);
    for (const { spec } of monitors) {
      expect(spec.targetLabels, 'by which alerts find the series up').to.deep.equal(['app.kubernetes.io/name']);
      expect(spec.endpoints[0]).to.deep.include({
        ...{ port: 'metrics', path: '/metrics', scheme: 'https' },
        bearerTokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
      });
    }
  });

  for (const [name, kind, configurations] of [
    ['holdfast-webhook', 'MutatingWebhookConfiguration', ['holdfast-webhook', 'holdfast-webhook-capacity']],
    ['holdfast-ipam', 'ValidatingWebhookConfiguration', ['holdfast-ipam']],
  ] as const) {
    it(`select ${name} by its Service`, () => {
      const { metadata, spec } = shipped.template(name);
      const service = shipped.find('Service', name);
      expect(service.spec.selector).to.deep.equal(metadata.labels);
      const ports = spec.containers.flatMap((container) => container.ports);
      for (const { targetPort } of service.spec.ports) expect(ports.map((port) => port.name)).to.include(targetPort);
    });

    it(`direct the API server to that Service, and allow ${name} to write the ${kind}`, () => {
      const webhooks = configurations.flatMap((configuration) => shipped.find(kind, configuration).webhooks);
      for (const { clientConfig } of webhooks) {
        expect(clientConfig.service).to.include({ name, namespace: 'holdfast-system' });
      }
      const plural = `${kind.toLowerCase()}s`;
      const own = shipped.find('ClusterRole', name).rules.filter(({ resources }) => resources?.includes(plural));
      expect(own.map(({ resourceNames }) => resourceNames)).to.deep.equal([[...configurations]]);
    });
  }

  for (const components of [[], ['all-in-one', 'without-capacity']])
    it(`allow everybody to reach the HTTPS ports, only labelled namespaces to reach metrics, and no pod to reach probes: ${components.join(' ')}`, async function () {
      this.timeout(GO_TOOL_TIMEOUT_MS);
      const { objects } = Installation.of(await kustomizeBase(components));
      const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy');
      const workloads = Installation.of(objects).workloads();
      const matchLabels = { 'ipam.holdfast.dev/metrics': 'allowed' };
      const metrics = { from: [{ namespaceSelector: { matchLabels } }], ports: [{ port: 'metrics' }] };
      // guest runs the responders
      expect(policies.filter(({ metadata }) => metadata.name !== 'holdfast-responder')).to.have.length(
        workloads.length,
      );
      for (const { kind, metadata, spec } of workloads) {
        const policy = policies.find(({ metadata: { name } }) => name === metadata.name);
        const ports = spec.template.spec.containers.flatMap((container) => container.ports.map(({ name }) => name));
        const https = ports.filter((name) => ['https', 'validation'].includes(name)).map((port) => ({ port }));
        expect(policy?.metadata.namespace, kind).to.equal(metadata.namespace);
        expect(policy?.spec, metadata.name).to.deep.equal({
          podSelector: { matchLabels: spec.template.metadata.labels },
          policyTypes: ['Ingress', 'Egress'],
          ingress: [...(https.length > 0 ? [{ ports: https }] : []), metrics],
          egress: [{ ports: [{ port: 443 }, { port: 6443 }] }],
        });
      }
    });
});
